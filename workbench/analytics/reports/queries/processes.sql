SELECT kind, name, pid, sampled_at, epoch(sampled_at - min(sampled_at) OVER ()) AS from_s, cpu_seconds, cpu_percent,
    memory_bytes / 1e6 AS memory_mb, processes
FROM process_samples ORDER BY sampled_at, name
