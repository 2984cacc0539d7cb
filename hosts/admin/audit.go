package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/internal/terminal"
	"github.com/pgherd/pgherd/ports"
)

func (m *metadata) audit() *cobra.Command {
	return group("audit", "the activity log", m.auditList())
}

// logOf are the flags that say which log is asked for.
type logOf struct {
	database, account string
	installation      bool
}

func (m *metadata) auditList() *cobra.Command {
	var of logOf
	var sinceText, untilText string
	var limit int
	var lines bool
	cmd := &cobra.Command{
		Use: "list", Short: "list what was done, newest first", Args: cobra.NoArgs,
		Long: "List what was done to a database, to an account and its databases, or to the installation as a whole, newest\n" +
			"first. With --json or --json-lines all fields are there, and a log of any size is written while it is read; a\n" +
			"list that breaks off ends with an error.",
		// What the lists were before they were one.
		Aliases: []string{"account", "installation"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			of.installation = of.installation || cmd.CalledAs() == "installation"
			err := of.check()
			if err != nil {
				return err
			}
			in := operator.Period{Limit: limit}
			if in.Since, err = parseTime("since", sinceText); err != nil {
				return err
			}
			if in.Until, err = parseTime("until", untilText); err != nil {
				return err
			}
			write := m.entryWriter(cmd.OutOrStdout(), lines)
			return m.operate(cmd, func(ctx context.Context, o *operator.Operator) error {
				list, err := of.reader(ctx, o)
				if err != nil {
					return err
				}
				if err := operator.EachPage(ctx, list, in, write.page); err != nil {
					return err
				}
				return write.end()
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&of.database, "database", "", "the log of this "+called[id.DatabaseID]())
	f.StringVar(&of.account, "account", "", "the log of this "+called[id.AccountID]()+"; with that of its databases")
	f.BoolVar(&of.installation, "installation", false, "what belongs to no account")
	f.StringVar(&sinceText, "since", "", "nothing older: 2026-03-01T00:00:00Z, or 2026-03-01 for its beginning in UTC")
	f.StringVar(&untilText, "until", "", "only what is older, likewise")
	f.IntVar(&limit, "limit", 0, "most entries to list; 0 lists all")
	f.BoolVar(&lines, "json-lines", false, "print a JSON object a line")
	return cmd
}

// errOneLog is the error of flags that name no log, or several.
var errOneLog = errors.New("audit list takes one of --database, --account and --installation")

func (l logOf) check() error {
	named := 0
	for _, is := range []bool{l.database != "", l.account != "", l.installation} {
		if is {
			named++
		}
	}
	if named != 1 {
		return errOneLog
	}
	return nil
}

// reader reads pages of the log that the flags name.
func (l logOf) reader(
	ctx context.Context, o *operator.Operator,
) (func(context.Context, ports.Page) (operator.Entries, error), error) {
	switch {
	case l.database != "":
		db, err := pastDatabase(ctx, o, "database", l.database)
		return func(ctx context.Context, p ports.Page) (operator.Entries, error) { return o.Audit(ctx, db, p) }, err
	case l.account != "":
		a, err := find[id.AccountID](ctx, o, "account", l.account)
		return func(ctx context.Context, p ports.Page) (operator.Entries, error) { return o.AccountAudit(ctx, a, p) }, err
	}
	return o.InstallationAudit, nil
}

// parseTime reads a time or a day; none is the zero time.
func parseTime(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, fault.Invalid(flag, "must be a time as 2026-03-01T00:00:00Z, or a day as 2026-03-01")
}

// entryWriter writes a log as it comes: as one JSON array, as JSON lines, or as a table.
type entryWriter struct {
	page func(operator.Entries) error
	end  func() error
}

func (m *metadata) entryWriter(w io.Writer, lines bool) entryWriter {
	nothing := func() error { return nil }
	each := func(write func(row) error) func(operator.Entries) error {
		return func(page operator.Entries) error {
			for _, e := range page {
				if err := write(auditedBy(e)); err != nil {
					return err
				}
			}
			return nil
		}
	}
	before := "["
	switch {
	case lines:
		return entryWriter{each(func(r row) error { return writeJSON(w, r) }), nothing}
	case m.json:
		return entryWriter{
			each(func(r row) error {
				_, err := io.WriteString(w, before)
				before = ","
				if err != nil {
					return err
				}
				return writeJSON(w, r)
			}),
			func() error { _, err := io.WriteString(w, strings.TrimPrefix(before, ",")+"]\n"); return err },
		}
	}
	some := false
	return entryWriter{
		func(page operator.Entries) error {
			some = some || len(page) > 0
			var text bytes.Buffer
			for _, e := range page {
				printEntry(&text, e)
			}
			_, err := w.Write(text.Bytes())
			return err
		},
		func() (err error) {
			if !some {
				_, err = io.WriteString(w, "none\n")
			}
			return err
		},
	}
}

// writeJSON writes an object on a line of its own.
func writeJSON(w io.Writer, r row) error {
	text, err := json.Marshal(r)
	if err == nil {
		_, err = io.WriteString(w, terminal.VisibleJSON(string(text))+"\n")
	}
	return err
}

// actionWidth is how much of a line most actions take.
const actionWidth = 26

// printEntry writes an entry for people. Its details come on lines of their own, and so does who acted where that does not fit.
// They are no wider than a terminal where a single one is not.
func printEntry(w *bytes.Buffer, by base.By[audit.Entry]) {
	e, who := by.What, by.What.Actor.Name
	if by.Person != nil {
		who += " (" + by.Person.Email + ")"
	}
	const indent = "   "
	head := e.At.UTC().Format(time.DateTime) + "  " + terminal.Padded(string(e.Action), actionWidth) + "  "
	if who = terminal.Visible(who); terminal.Columns(head)+terminal.Columns(who) > lineWidth {
		head, who = strings.TrimRight(head, " "), "\n"+indent+" "+who
	}
	fmt.Fprintln(w, head+who)
	line := ""
	for _, name := range slices.Sorted(maps.Keys(e.Details)) {
		detail := " " + terminal.Visible(pairs(map[string]string{name: e.Details[name]}))
		if line != "" && terminal.Columns(indent)+terminal.Columns(line)+terminal.Columns(detail) > lineWidth {
			fmt.Fprintln(w, indent+line)
			line = ""
		}
		line += detail
	}
	if line != "" {
		fmt.Fprintln(w, indent+line)
	}
}

func auditedBy(by base.By[audit.Entry]) row {
	e := by.What
	return append(row{
		{"id", e.ID}, {"at", e.At}, {"accountId", some(string(e.AccountID))}, {"databaseId", some(string(e.DatabaseID))},
		{"actor", e.Actor.Name}, {"action", e.Action}, {"details", e.Details},
	}, personRow(by.Person)...)
}

// personRow are the fields that name a person, without values where nobody is known.
func personRow(u *account.User) row {
	if u == nil {
		return row{{"userId", nil}, {"email", nil}}
	}
	return row{{"userId", u.ID}, {"email", u.Email}}
}
