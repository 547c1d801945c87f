//! Tests of what is particular to SQLite.
