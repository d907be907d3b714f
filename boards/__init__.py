"""Boards: a core with memory and a link to a PC, built into bitstreams."""
