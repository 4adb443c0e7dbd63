"""The long run of random faults, started by tests/chaos and tests/fleet/test_92_chaos.py.

plan.py draws turns and faults from the seed, run.py lets them happen, executor.py is what the workers
call, proxy.py stands between one worker and the broker, tail.py reads the topics, account.py counts.
"""
