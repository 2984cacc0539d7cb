-- What tells a server from every other one, by whichever address its agent is reached; empty until its agent has said it. Hosts of
-- the version before insert and save servers without it.

-- +goose Up

ALTER TABLE servers ADD COLUMN installation text NOT NULL DEFAULT '';
CREATE UNIQUE INDEX servers_installation_unique ON servers (installation) WHERE installation <> '';
