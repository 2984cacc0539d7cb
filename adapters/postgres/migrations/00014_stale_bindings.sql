-- Bindings of keys to databases of other accounts of which the keys' users are no members. The removal of a member missed a key
-- that was being replaced at the moment; a later membership would open the database to it by itself.

-- +goose Up

DELETE FROM key_databases b USING api_keys k, databases d
WHERE k.id = b.key_id AND d.id = b.database_id AND k.account_id <> d.account_id
    AND NOT EXISTS (SELECT FROM memberships m WHERE m.database_id = d.id AND m.user_id = k.user_id);
