package copies

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/copyout"
	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/agent/joblogin"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/sessions"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
)

// copyPurpose is what copies are made for.
type copyPurpose struct {
	name string
	// untilClosed says that a copy is wanted until its operation is closed. Any other is wanted by the attempt that has made it:
	// the next one makes its own.
	untilClosed bool
}

const copyMark joblogin.Mark = "pgherd isolated copy "

var (
	verification = copyPurpose{name: "verify"}
	scratch      = copyPurpose{name: "qualify"}
)

// Isolated is a copy of a database, made for one operation, and the login of the same name that restores into it. No name
// follows the copied database: several copies of one can stand beside each other.
//
// The login's comment is our mark. The login is created first, in one transaction with the mark and the row of ledger.copy, and
// dropped last. So a database of this name is ours exactly while a marked login of the same name exists, and whatever a crash
// leaves behind is known to the sweep. Nothing without the mark is ever dropped.
type Isolated struct {
	server   *sessions.Server
	purpose  copyPurpose
	op       id.OperationID
	of       id.DatabaseID
	admin    *sql.DB // on the maintenance database
	password string
}

// Name is that of the copy and of its login.
func (i *Isolated) Name() string { return i.purpose.name + "_" + id.Compact(i.op) }

func (x *Copies) copyFor(p copyPurpose, op id.OperationID, of id.DatabaseID, admin *sql.DB) *Isolated {
	return &Isolated{server: x.Server, purpose: p, op: op, of: of, admin: admin}
}

// Scratch is a database made to prove something of its backup.
func (x *Copies) Scratch(op id.OperationID, admin *sql.DB) *Isolated {
	return x.copyFor(scratch, op, "", admin)
}

// createTime bounds the making of a copy, in which nothing of a customer's runs.
const createTime = 10 * time.Minute

// Create makes login and database. The login is a member of nothing and can reach only its copy. It bypasses row security, as
// whoever restores a dump elsewhere does, because materialized views are refreshed when policies are already in force.
func (i *Isolated) Create(ctx context.Context, l backup.Locale, crash func(string)) error {
	ctx, cancel := context.WithTimeout(ctx, createTime)
	defer cancel()
	if err := i.createLogin(ctx); err != nil {
		return err
	}
	crash("backup.verify.role-created")
	name := dumpsql.QuoteIdentifier(i.Name())
	for _, statement := range []string{
		`CREATE DATABASE ` + name + ` TEMPLATE template0` + localeOptions(l),
		`REVOKE ALL ON DATABASE ` + name + ` FROM PUBLIC`,
		`GRANT CONNECT, CREATE, TEMPORARY ON DATABASE ` + name + ` TO ` + name,
	} {
		if _, err := i.admin.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("make the isolated copy: %w", err)
		}
	}
	crash("backup.verify.database-created")
	return i.server.With(i.Name(), i.op, func(db *sql.DB) error {
		_, err := db.ExecContext(ctx, `ALTER SCHEMA public OWNER TO `+name)
		return err
	})
}

func (i *Isolated) createLogin(ctx context.Context) (err error) {
	enter := fmt.Sprintf(`INSERT INTO ledger.copy (name, purpose, operation_id, database_id, until_closed)
		VALUES (%s, %s, %s, %s, %t) ON CONFLICT (name) DO UPDATE SET database_id = excluded.database_id`,
		pq.QuoteLiteral(i.Name()), pq.QuoteLiteral(i.purpose.name), pq.QuoteLiteral(string(i.op)), pq.QuoteLiteral(string(i.of)),
		i.purpose.untilClosed)
	// In the copy indexes are built: its reservation bounds the temporary files of that. Neither the login itself can set the
	// parameter, nor any customer's.
	exempt := `ALTER ROLE ` + dumpsql.QuoteIdentifier(i.Name()) + ` SET temp_file_limit = -1`
	i.password, err = copyMark.Make(ctx, i.admin, i.Name(), joblogin.BypassRowSecurity(i.Name()), exempt, enter)
	return err
}

func localeOptions(l backup.Locale) string {
	var b strings.Builder
	option := func(name, value string) {
		if value != "" {
			b.WriteString(" " + name + " " + pq.QuoteLiteral(value))
		}
	}
	option("ENCODING", l.Encoding)
	b.WriteString(" LOCALE_PROVIDER " + l.Provider)
	option("LC_COLLATE", l.Collate)
	option("LC_CTYPE", l.Ctype)
	if l.Provider == "builtin" {
		option("BUILTIN_LOCALE", l.ICULocale)
	} else {
		option("ICU_LOCALE", l.ICULocale)
	}
	option("ICU_RULES", l.ICURules)
	return b.String()
}

// connect opens the restore's connection. Its commits do not wait for the disk: a copy that a crash of PostgreSQL comes over is
// made again, and what records that one is whole waits for everything before. What PostgreSQL answers is at times what a
// customer's code says: nothing in it is longer than copyout.LongestMessage.
func (i *Isolated) connect(ctx context.Context) (*pgconn.PgConn, error) {
	conn, err := i.server.Dial(ctx, i.Name(), i.password, i.Name(), map[string]string{
		"application_name": sessions.Name(i.op), "synchronous_commit": "off",
	})
	if err != nil {
		return nil, fmt.Errorf("the isolated copy: %w", err)
	}
	conn.Frontend().SetMaxBodyLen(copyout.LongestMessage)
	return conn, nil
}

// Session runs something as the login of the copy.
func (i *Isolated) Session(ctx context.Context, do func(*pgconn.PgConn) error) error {
	conn, err := i.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the copy is dropped in any case
	return do(conn)
}

// Drop removes database and login if they bear our mark. It is no error if they do not exist.
func (i *Isolated) Drop(ctx context.Context, crash func(string)) error {
	return dropMarked(ctx, i.admin, i.Name(), joblogin.RunPatience, crash)
}

// dropMarked drops what a mark keeps, and the mark.
func dropMarked(ctx context.Context, admin *sql.DB, name string, patience time.Duration, crash func(string)) error {
	forget := `DELETE FROM ledger.copy WHERE name = ` + pq.QuoteLiteral(name)
	found, err := copyMark.Exists(ctx, admin, name)
	if err == nil && !found { // an administrator has dropped it, or its row was entered while it was dropped
		_, err = admin.ExecContext(ctx, forget)
		return err
	}
	if err != nil {
		return err
	}
	database, err := standsAs(ctx, admin, name)
	if err != nil {
		return err
	}
	if database != "" {
		err = pg.DropDatabase(ctx, admin, database)
	}
	if err != nil {
		return fmt.Errorf("drop the isolated copy: %w", err)
	}
	crash("backup.verify.database-dropped")
	if err := joblogin.End(ctx, admin, name, patience, forget); err != nil {
		return err
	}
	crash("backup.verify.dropped")
	return nil
}
