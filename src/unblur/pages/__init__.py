"""Pages: self-contained HTML from templates, with one look. No scripts, no outside request; prints, dark mode, phones."""
