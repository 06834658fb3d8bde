"""Advice: which protocol, at which values of some keys, reaches a target accuracy within budgets?"""
