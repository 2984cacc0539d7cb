package stack

// Unfinished is a query of the metadata for what somebody still has to do, as one text: empty where nobody has anything left.
const Unfinished = `SELECT coalesce(string_agg(what, '; '), '') FROM (
	SELECT format('%s %s is %s at %s, attempt %s', kind, id, status, stage, attempts) AS what FROM operations
	 WHERE status IN ('queued', 'running')
	UNION ALL SELECT format('allowlist of %s', name) FROM databases
	 WHERE allowlist_applied < allowlist_generation AND status <> 'deleted'
	UNION ALL SELECT format('settings of %s', name) FROM databases
	 WHERE settings_applied < settings_generation AND status <> 'deleted'
	UNION ALL SELECT format('%s of %s', kind, username) FROM role_changes WHERE status = 'pending'
	UNION ALL SELECT format('expiry of %s', username) FROM roles WHERE status = 'ready' AND credential_expires_at < now()
	UNION ALL SELECT format('deletion of %s', filename) FROM backups WHERE deleting_at IS NOT NULL OR expires_at < now()) open`
