"""Cutting texts into sentences, words, phrases and named entities."""
