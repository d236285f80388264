"""The audit: does the speculative decoding of another program keep the distribution of its plain decoding?"""
