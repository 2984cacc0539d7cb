package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/certificate"
	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
)

var (
	sealedCertificateKeys = pgdb.Define(signingKeyTable.Read().Where("t.sealed_seed IS NOT NULL AND t.id > ?").
				OrderBy("t.id").Suffix("LIMIT ?"))
	sealedChanges = pgdb.Define(roleChangeTable.Read().Where("t.sealed IS NOT NULL AND t.id > ?").OrderBy("t.id").Suffix("LIMIT ?"))
	sealedLogins  = pgdb.Define(loginTable.Read().Where("(t.database_id, t.login) > (?, ?)").
			OrderBy("t.database_id", "t.login").Suffix("LIMIT ?"))
	sealedMails    = pgdb.Define(mailTable.Read().Where("t.sealed_token IS NOT NULL AND t.id > ?").OrderBy("t.id").Suffix("LIMIT ?"))
	sealedRoles    = pgdb.Define(roleTable.Read().Where("t.sealed IS NOT NULL AND t.id > ?").OrderBy("t.id").Suffix("LIMIT ?"))
	sealedServers  = pgdb.Define(serverTable.Read().Where("t.id > ?").OrderBy("t.id").Suffix("LIMIT ?"))
	sealedWebhooks = pgdb.Define(webhookTable.Read().Where("t.id > ?").OrderBy("t.id").Suffix("LIMIT ?"))
	// The holder of the database's lock writes back what it has read of roles and changes, so these two wait for it.
	resealChange = pgdb.Written(`
		UPDATE role_changes c SET sealed = $1
		FROM (SELECT id FROM databases WHERE id = (SELECT database_id FROM role_changes WHERE id = $2) FOR NO KEY UPDATE) d
		WHERE c.id = $2 AND c.database_id = d.id AND c.sealed = $3`)
	resealRole = pgdb.Written(`
		UPDATE roles r SET sealed = $1
		FROM (SELECT id FROM databases WHERE id = (SELECT database_id FROM roles WHERE id = $2) FOR NO KEY UPDATE) d
		WHERE r.id = $2 AND r.database_id = d.id AND r.sealed = $3`)
	resealCertificateKey = pgdb.Written("UPDATE certificate_keys SET sealed_seed = $1 WHERE id = $2 AND sealed_seed = $3")
	resealLogin          = pgdb.Written(`
		UPDATE database_logins SET sealed = $1 WHERE database_id = $2 AND login = $3 AND sealed = $4`)
	resealMail    = pgdb.Written("UPDATE mails SET sealed_token = $1 WHERE id = $2 AND sealed_token = $3")
	resealServer  = pgdb.Written("UPDATE servers SET sealed_secret = $1 WHERE id = $2 AND sealed_secret = $3")
	resealWebhook = pgdb.Written("UPDATE webhook_endpoints SET sealed_secret = $1 WHERE id = $2 AND sealed_secret = $3")
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
	{"certificate-key", []string{pgdb.FirstUUID}, sealedIn(sealedCertificateKeys, func(k certificate.Key) ports.SealedValue {
		return ports.SealedValue{Ref: "certificate-key/" + string(k.ID), Context: k.SecretContext(), Sealed: k.SealedSeed}
	}), resealCertificateKey},
	{"change", []string{pgdb.FirstUUID}, sealedIn(sealedChanges, func(c role.Change) ports.SealedValue {
		return ports.SealedValue{Ref: "change/" + string(c.ID), Context: c.SecretContext(), Sealed: c.Sealed}
	}), resealChange},
	{"login", []string{pgdb.FirstUUID, ""}, sealedIn(sealedLogins, func(l ports.LoginSecret) ports.SealedValue {
		ref := "login/" + string(l.DatabaseID) + "/" + string(l.Login)
		return ports.SealedValue{Ref: ref, Context: l.Context(), Sealed: l.Sealed}
	}), resealLogin},
	{"mail", []string{pgdb.FirstUUID}, sealedIn(sealedMails, func(m mail.Mail) ports.SealedValue {
		return ports.SealedValue{Ref: "mail/" + string(m.ID), Context: mail.SecretContext(m.ID), Sealed: m.SealedToken}
	}), resealMail},
	{"role", []string{pgdb.FirstUUID}, sealedIn(sealedRoles, func(r role.Role) ports.SealedValue {
		return ports.SealedValue{Ref: "role/" + string(r.ID), Context: r.SecretContext(), Sealed: r.Sealed}
	}), resealRole},
	{"server", []string{pgdb.FirstUUID}, sealedIn(sealedServers, func(s server.Server) ports.SealedValue {
		return ports.SealedValue{Ref: "server/" + string(s.ID), Context: s.SecretContext(), Sealed: s.SealedSecret}
	}), resealServer},
	{"webhook", []string{pgdb.FirstUUID}, sealedIn(sealedWebhooks, func(e webhook.Endpoint) ports.SealedValue {
		return ports.SealedValue{Ref: "webhook/" + string(e.ID), Context: webhook.SecretContext(e.ID), Sealed: e.SealedSecret}
	}), resealWebhook},
}

// sealedIn reads what a statement finds, and of each row its encrypted value.
func sealedIn[T any](
	st *pgdb.Statement, value func(T) ports.SealedValue,
) func(context.Context, pgdb.Session, []any) ([]ports.SealedValue, error) {
	return func(ctx context.Context, s pgdb.Session, after []any) ([]ports.SealedValue, error) {
		rows, err := pgdb.All[T](ctx, s, st, after...)
		values := make([]ports.SealedValue, len(rows))
		for i, row := range rows {
			values[i] = value(row)
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
