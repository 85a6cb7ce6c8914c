"""The generated Python package against a real Rust host, flatc, and hostile peers.

`cargo test -p zlink-generated --test python` runs them; ZLINK_INTEROP_HOST names the host's program.
"""
