package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/controlplane/rehearsals"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/rehearsal"
)

func (m *metadata) databaseRehearse() *cobra.Command {
	var to string
	var wait bool
	cmd := &cobra.Command{
		Use: "rehearse", Short: "try the move of a database to another PostgreSQL on a copy",
		Long: "Load a copy of a database at another server, closed to everybody, compare it with the database, and remove it. What\n" +
			"breaks there is told: extensions, collations, types, and words that are PostgreSQL's own now; what a move only leaves\n" +
			"out, such as settings that the server does not know, is noted. The database serves meanwhile. A move to another\n" +
			"PostgreSQL needs a rehearsal of the last seven days in which nothing broke, of the schema that the database has then;\n" +
			"database movable shows the last ones.",
	}
	f := cmd.Flags()
	f.StringVar(&to, "to", "", called[id.ServerID]())
	f.BoolVar(&wait, "wait", false, "wait for the end, and fail where something breaks")
	rehearse := func(ctx context.Context, o *operator.Operator, db id.DatabaseID) (output, error) {
		at, err := find[id.ServerID](ctx, o, "to", to)
		if err != nil {
			return nil, err
		}
		found, err := o.RehearseDatabase(ctx, db, at, person())
		if err != nil || !wait {
			return operationRow(found), err
		}
		if found, err = waitFor(ctx, cmd, o, found.ID); err != nil {
			return operationRow(found), err
		}
		result, err := operation.Decode[rehearsal.Result](found.Result)
		if err == nil && len(result.Breaks) > 0 {
			err = fmt.Errorf("%w: %d at %s, which has PostgreSQL %d", errBreaks, len(result.Breaks), result.Server,
				result.PostgresVersion)
		}
		return row{
			{"operationId", found.ID}, {"databaseId", db}, {"server", result.Server}, {"postgresVersion", result.PostgresVersion},
			{"breaks", breakTable(result.Breaks)}, {"notes", result.Notes},
		}, err
	}
	return onID(m, required(cmd, "to"), "database", rehearse)
}

// errBreaks says that a rehearsal has come to its end, and found something.
var errBreaks = errors.New("the rehearsal found what breaks")

func breakTable(list []rehearsal.Break) table {
	return tableOf(list, func(b rehearsal.Break) row {
		return row{{"kind", b.Kind}, {"object", some(b.Object)}, {"what", b.What}, {"remedy", b.Remedy}}
	})
}

// rehearsalTable shows the last rehearsals of a database, and why one does not permit a move.
func rehearsalTable(list []rehearsals.Shown) (output, error) {
	rows := make(table, 0, len(list))
	for _, r := range list {
		found, err := r.Found()
		if err != nil {
			return nil, err
		}
		rows = append(rows, row{
			{"postgresVersion", r.PostgresVersion}, {"endedAt", r.EndedAt}, {"permits", r.Lacks == ""}, {"lacks", some(r.Lacks)},
			{"operationId", r.OperationID}, {"serverId", r.ServerID}, {"breaks", breakTable(found)},
		})
	}
	return rows.only("postgresVersion", "endedAt", "permits", "lacks"), nil
}
