"""The local log from outside: plain sqlite3, no line of Baton."""
