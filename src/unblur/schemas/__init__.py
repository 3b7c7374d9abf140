"""JSON Schemas of what unblur writes."""
