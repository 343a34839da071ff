"""What a text is made of: tokens, words, sentences and spans, as units with character offsets."""
