-- The floor of one request alone: a durable insert of a single row.
INSERT INTO assignments(id, experiment_id, arm, unit) VALUES (gen_random_uuid(), 1, 1, 'u1');
