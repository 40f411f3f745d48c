SELECT command, count(*) AS runs, count(*) FILTER (WHERE state = 'passed') AS passed,
    count(*) FILTER (WHERE state <> 'passed') AS failed, median(seconds) AS median_s, max(seconds) AS longest_s
FROM gates GROUP BY command ORDER BY failed DESC, longest_s DESC, command
