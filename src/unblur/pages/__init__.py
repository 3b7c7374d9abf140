"""Pages: self-contained HTML from templates, one look. No scripts, no outside request; for screen, paper and phone."""
