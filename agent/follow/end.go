package follow

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// endOf is where the log of the server ends that a connection leads to.
func endOf(ctx context.Context, conninfo string) (position string, err error) {
	cfg, err := pgconn.ParseConfig(conninfo)
	if err != nil {
		return "", errors.New("the line cannot be read") // the cause may quote its password
	}
	cfg.RuntimeParams = map[string]string{"replication": "database"}
	conn, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return "", err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it has only asked
	results, err := conn.Exec(ctx, "IDENTIFY_SYSTEM").ReadAll()
	if err == nil && (len(results) == 0 || len(results[0].Rows) != 1 || len(results[0].Rows[0]) < 3) {
		err = errors.New("the other server does not say where its log ends")
	}
	if err != nil {
		return "", err
	}
	return string(results[0].Rows[0][2]), nil
}
