package dev

import (
	"context"
	"fmt"
	"io"

	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// developmentVersions lets every version pass: nobody's data depends on a development host.
var developmentVersions = floors.Policy{Development: true}

// sayVersions names the programs with known holes, once at a start: every other host refuses them.
func sayVersions(ctx context.Context, out io.Writer, tools toolchain.Tools) error {
	for _, path := range []string{tools.Postgres, tools.PgBouncer, tools.PgDump, tools.PgBackRest} {
		found, err := floors.Find(ctx, path, nil)
		if err != nil {
			return err
		}
		if v := developmentVersions.Judge(found); v.Below {
			_, _ = fmt.Fprintf(out, "note: %s is older than %s and has known holes; it will do for development only\n", v.Text, v.Floor)
		}
	}
	return nil
}
