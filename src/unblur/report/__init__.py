"""The report: one audit put before the person who decides, as HTML, as Markdown, or in a notebook.

It shows an audit and judges it against a limit; it attacks nothing. Two versions: the internal one names classes and
says why, the public one has aggregates only. What the public one may show is decided where the contents are gathered,
so that no template can slip.
"""
