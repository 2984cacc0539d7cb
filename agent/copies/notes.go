package copies

import (
	"context"
	"fmt"
	"strings"

	"github.com/pgherd/pgherd/agent/content"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/sidecar"
	"github.com/pgherd/pgherd/agent/stored"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
)

// version is the major version of the server.
const version = "SELECT current_setting('server_version_num')::int / 10000"

// notes tell what the copy has not: what the server does not know, and policies. Those come last, as there may be many.
func notes(
	ctx context.Context, admin pg.Querier, req Request, m backup.Manifest, made sidecar.Result,
) (list []string, err error) {
	here, err := pg.One[int](ctx, admin, version)
	if err != nil {
		return nil, err
	}
	for _, what := range made.Lacked {
		list = append(list, fmt.Sprintf("%s: left out, as PostgreSQL %d has none", what, here))
	}
	if req.Moving {
		settings, err := unstored(ctx, admin, m, here)
		if err != nil {
			return nil, err
		}
		list = append(list, settings...)
	}
	for _, p := range made.DroppedPolicies {
		list = append(list, "policy "+p+" was left out: the database has none of its roles")
	}
	return command.Noted(nil, list...), nil
}

// unstored tells which settings of logins a move does not bring along.
func unstored(ctx context.Context, admin pg.Querier, m backup.Manifest, here int) (list []string, err error) {
	known, err := content.KnownSettings(ctx, admin)
	if err != nil {
		return nil, err
	}
	for _, s := range m.Settings {
		if s.Login == "" { // the service's, which it sets itself
			continue
		}
		if s.Name == "" {
			list = append(list, "the settings of "+s.Login+" were left out: it has stored too many")
			continue
		}
		ours, err := stored.Storable(ctx, admin, s.Name)
		if err != nil {
			return nil, err
		}
		why := "an administrator has to store it again"
		switch {
		case ours:
			continue
		case strings.Contains(s.Name, "."):
			why = "it is an extension's, and the login can store it again"
		case !known[s.Name]:
			why = fmt.Sprintf("PostgreSQL %d does not know it", here)
		}
		list = append(list, fmt.Sprintf("the setting %s of %s was left out: %s", s.Name, s.Login, why))
	}
	return list, nil
}
