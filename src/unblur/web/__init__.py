"""The local web page: files in, a description, an audit with progress, the report; nothing leaves the machine.

The server itself reads no file of a user as long as nobody has looked at it in a process of its own: whatever may take
long or break is a job (`jobs`, `worker`). What a user brings lies in a private folder and goes with it (`cases`).
Who may speak to the server at all is decided in one place (`guard`).
"""
