package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/certificate"
	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
)

// A login has a key of two columns.
var (
	sealedBackupKeys = pgdb.Define(backupKeyTable.Read().Where("t.database_id > ?").OrderBy("t.database_id").Suffix("LIMIT ?"))
	resealBackupKey  = pgdb.Written("UPDATE backup_keys SET sealed = $1 WHERE database_id = $2 AND sealed = $3")
	sealedLogins     = pgdb.Define(loginTable.Read().Where("(t.database_id, t.login) > (?, ?)").
				OrderBy("t.database_id", "t.login").Suffix("LIMIT ?"))
	resealLogin = pgdb.Written("UPDATE database_logins SET sealed = $1 WHERE database_id = $2 AND login = $3 AND sealed = $4")
)

// sealedRows are the encrypted values of one table. The key of a row is what follows the first slash of its Ref, cut at the
// slashes.
type sealedRows struct {
	kind   string   // what a Ref begins with
	first  []string // sorts before every key
	read   func(ctx context.Context, s pgdb.Session, after []any) ([]ports.SealedValue, error)
	reseal *pgdb.Statement
}

// sealedTables are in the order of their Refs. Changes come before logins and roles, because the password of a completed change
// moves there: an iteration that misses it in the first table finds it in a later one.
var sealedTables = []sealedRows{
	sealed("archive-key", serverTable, "sealed_archive_key", resealing, func(s server.Server) (string, string, []byte) {
		return string(s.ID), s.ArchiveContext(), s.SealedArchiveKey
	}),
	{"backup-key", []string{pgdb.FirstUUID}, sealedIn("backup-key", sealedBackupKeys, func(k backup.Key) (string, string, []byte) {
		return string(k.DatabaseID), k.SecretContext(), k.Sealed
	}), resealBackupKey},
	sealed("certificate-key", signingKeyTable, "sealed_seed", resealing, func(k certificate.Key) (string, string, []byte) {
		return string(k.ID), k.SecretContext(), k.SealedSeed
	}),
	sealed("change", roleChangeTable, "sealed", resealingLocked, func(c role.Change) (string, string, []byte) {
		return string(c.ID), c.SecretContext(), c.Sealed
	}),
	sealed("factor", factorTable, "sealed_secret", resealing, func(f person.Factor) (string, string, []byte) {
		return string(f.UserID), f.SecretContext(), f.SealedSecret
	}),
	{"login", []string{pgdb.FirstUUID, ""}, sealedIn("login", sealedLogins, func(l ports.LoginSecret) (string, string, []byte) {
		return string(l.DatabaseID) + "/" + string(l.Login), l.Context(), l.Sealed
	}), resealLogin},
	sealed("mail", mailTable, "sealed_token", resealing, func(m mail.Mail) (string, string, []byte) {
		return string(m.ID), mail.SecretContext(m.ID), m.SealedToken
	}),
	sealed("operation-input", operationTable, "sealed_input", resealing, func(o operation.Operation) (string, string, []byte) {
		return string(o.ID), o.InputContext(), o.SealedInput
	}),
	sealed("operation-result", operationTable, "sealed_result", resealing, func(o operation.Operation) (string, string, []byte) {
		return string(o.ID), o.ResultContext(), o.SealedResult
	}),
	sealed("role", roleTable, "sealed", resealingLocked, func(r role.Role) (string, string, []byte) {
		return string(r.ID), r.SecretContext(), r.Sealed
	}),
	sealed("server", serverTable, "sealed_secret", resealing, func(s server.Server) (string, string, []byte) {
		return string(s.ID), s.SecretContext(), s.SealedSecret
	}),
	sealed("webhook", webhookTable, "sealed_secret", resealing, func(e webhook.Endpoint) (string, string, []byte) {
		return string(e.ID), webhook.SecretContext(e.ID), e.SealedSecret
	}),
}

// The holder of a database's lock writes back what it has read of roles and changes, so a replacement of theirs waits for it.
const (
	resealing       = "UPDATE TABLE SET SEALED = $1 WHERE id = $2 AND SEALED = $3"
	resealingLocked = `
		UPDATE TABLE r SET SEALED = $1
		FROM (SELECT id FROM databases WHERE id = (SELECT database_id FROM TABLE WHERE id = $2) FOR NO KEY UPDATE) d
		WHERE r.id = $2 AND r.database_id = d.id AND r.SEALED = $3`
)

// sealed are those of a column, in a table whose key is a uuid. Of a row, value says its key, the context of its secret, and
// that.
func sealed[T any](
	kind string, t *pgdb.Table[T], column, reseal string, value func(T) (key, secretContext string, sealed []byte),
) sealedRows {
	read := pgdb.Define(t.Read().Where("t." + column + " IS NOT NULL AND t.id > ?").OrderBy("t.id").Suffix("LIMIT ?"))
	write := pgdb.Written(strings.NewReplacer("TABLE", t.Name, "SEALED", column).Replace(reseal))
	return sealedRows{kind, []string{pgdb.FirstUUID}, sealedIn(kind, read, value), write}
}

// sealedIn reads what a statement finds, and of each row its encrypted value.
func sealedIn[T any](
	kind string, st *pgdb.Statement, value func(T) (string, string, []byte),
) func(context.Context, pgdb.Session, []any) ([]ports.SealedValue, error) {
	return func(ctx context.Context, s pgdb.Session, after []any) ([]ports.SealedValue, error) {
		rows, err := pgdb.All[T](ctx, s, st, after...)
		values := make([]ports.SealedValue, len(rows))
		for i, row := range rows {
			key, secretContext, sealed := value(row)
			values[i] = ports.SealedValue{Ref: kind + "/" + key, Context: secretContext, Sealed: sealed}
		}
		return values, err
	}
}

type sealedValues struct{ pgdb.Session }

// Next reads one table to its end, then the next. It never returns values of two tables, so that all replacements in one table
// are done before the next is read, and nothing can move past the iteration.
func (v sealedValues) Next(ctx context.Context, after string, limit int) ([]ports.SealedValue, error) {
	table, key, err := placeOf(after)
	if err != nil {
		return nil, err
	}
	var values []ports.SealedValue
	for ; table < len(sealedTables) && len(values) == 0; table++ {
		if key == nil {
			key = sealedTables[table].first
		}
		if values, err = sealedTables[table].read(ctx, v.Session, append(arguments(key), limit)); err != nil {
			return nil, err
		}
		key = nil
	}
	return values, nil
}

// placeOf finds the table and the key that a Ref names; the empty Ref is before the first of all.
func placeOf(ref string) (table int, key []string, err error) {
	if ref == "" {
		return 0, nil, nil
	}
	parts := strings.Split(ref, "/")
	for i, t := range sealedTables {
		if t.kind == parts[0] && len(t.first) == len(parts)-1 {
			return i, parts[1:], nil
		}
	}
	return 0, nil, fmt.Errorf("%q is no reference to an encrypted value", ref)
}

func arguments(key []string) []any {
	list := make([]any, len(key), len(key)+2)
	for i, part := range key {
		list[i] = part
	}
	return list
}

func (v sealedValues) Replace(ctx context.Context, value ports.SealedValue, sealed []byte) error {
	table, key, err := placeOf(value.Ref)
	if err != nil {
		return err
	}
	return v.Write(ctx, sealedTables[table].reseal, append(append([]any{sealed}, arguments(key)...), value.Sealed)...)
}
