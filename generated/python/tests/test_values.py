"""What Rust and flatc encoded from a seed is what Python draws from it."""

from __future__ import annotations

import os
import pathlib
import unittest

from zlink_generated.test_every_type import All
from zlink_generated.zlink import decode, encode

from .values import value


class Values(unittest.TestCase):
    def test_all_agree(self) -> None:
        lines = pathlib.Path(os.environ["ZLINK_VALUES"]).read_text().splitlines()
        self.assertEqual(len(lines), 200)
        for seed, line in enumerate(lines):
            rust, flatc = (bytes.fromhex(part) for part in line.split())
            self.assertEqual(decode(All, rust), value(seed), seed)
            self.assertEqual(decode(All, flatc), value(seed), seed)
            self.assertEqual(encode(value(seed)), rust, f"{seed}: byte for byte as Rust")


if __name__ == "__main__":
    unittest.main()
