"""What all services of onion share: access, limits, bodies, errors.

auth.py          the token, and who may call
limits.py        how much is accepted
bounded.py       uvicorn with these limits
guard.py         what every request passes before the routes; the form of errors
messages.py      bodies and JSON
page_files.py    the files of a page
listening.py     the socket
refused.py       the exception for the caller's mistakes
"""
