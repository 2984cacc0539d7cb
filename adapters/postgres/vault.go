package postgres

import (
	"context"
	"fmt"
	"strings"

	sq "github.com/Masterminds/squirrel"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// The first parts of a Ref, in their order.
const (
	loginRef  = "login/"
	serverRef = "server/"
)

var (
	sealedLogins = define(func() sq.Sqlizer {
		return loginTable.read().Where("(t.database_id, t.login) > (?, ?)").OrderBy("t.database_id", "t.login").Suffix("LIMIT ?")
	})
	sealedServers = define(func() sq.Sqlizer {
		return serverTable.read().Where("t.id > ?").OrderBy("t.id").Suffix("LIMIT ?")
	})
	resealLogin  = written("UPDATE database_logins SET sealed = $1 WHERE database_id = $2 AND login = $3 AND sealed = $4")
	resealServer = written("UPDATE servers SET sealed_secret = $1 WHERE id = $2 AND sealed_secret = $3")
)

type vault struct{ session }

// Next reads logins until there are no more, then servers: that is the order of their Refs.
func (v vault) Next(ctx context.Context, after string, limit int) ([]ports.SealedValue, error) {
	if of, ok := strings.CutPrefix(after, serverRef); ok {
		return v.servers(ctx, of, limit)
	}
	db, login := firstUUID, ""
	if after != "" {
		var err error
		if db, login, err = cutLoginRef(after); err != nil {
			return nil, err
		}
	}
	values, err := v.logins(ctx, db, login, limit)
	if err != nil || len(values) == limit {
		return values, err
	}
	more, err := v.servers(ctx, firstUUID, limit-len(values))
	return append(values, more...), err
}

func cutLoginRef(ref string) (db, login string, err error) {
	rest, isLogin := strings.CutPrefix(ref, loginRef)
	db, login, found := strings.Cut(rest, "/")
	if !isLogin || !found {
		return "", "", fmt.Errorf("%q is no reference to an encrypted value", ref)
	}
	return db, login, nil
}

func (v vault) logins(ctx context.Context, db, login string, limit int) ([]ports.SealedValue, error) {
	rows, err := all[ports.LoginSecret](ctx, v.session, sealedLogins, db, login, limit)
	values := make([]ports.SealedValue, len(rows))
	for i, r := range rows {
		ref := loginRef + string(r.DatabaseID) + "/" + string(r.Login)
		values[i] = ports.SealedValue{Ref: ref, Context: r.Context(), Sealed: r.Sealed}
	}
	return values, err
}

func (v vault) servers(ctx context.Context, after string, limit int) ([]ports.SealedValue, error) {
	rows, err := all[server.Server](ctx, v.session, sealedServers, after, limit)
	values := make([]ports.SealedValue, len(rows))
	for i, r := range rows {
		values[i] = ports.SealedValue{Ref: serverRef + string(r.ID), Context: r.SecretContext(), Sealed: r.SealedSecret}
	}
	return values, err
}

func (v vault) Replace(ctx context.Context, value ports.SealedValue, sealed []byte) error {
	if of, ok := strings.CutPrefix(value.Ref, serverRef); ok {
		return v.write(ctx, resealServer, sealed, id.ServerID(of), value.Sealed)
	}
	db, login, err := cutLoginRef(value.Ref)
	if err != nil {
		return err
	}
	return v.write(ctx, resealLogin, sealed, db, login, value.Sealed)
}
