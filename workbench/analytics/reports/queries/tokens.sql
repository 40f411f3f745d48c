SELECT coalesce(definition, 'no definition') AS definition, model, count(*) AS answers, count(input_tokens) AS reported, count(cost_usd) AS priced, sum(input_tokens) AS tokens_in,
    sum(output_tokens) AS tokens_out, sum(cost_usd) AS usd
FROM turns WHERE role = 'assistant' GROUP BY ALL ORDER BY tokens_in DESC NULLS LAST, definition, model
