//go:build linux

package soak

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"log"
	"strconv"
	"strings"
	"time"

	"github.com/pgherd/pgherd/acceptance/soak/plan"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/core/database"
)

// look looks at everything that must hold while all is quiet. Each invariant tells what is broken, of which database, and since
// which step, as far as that is known.
func (r *run) look(ctx context.Context, round int) {
	for _, invariant := range []struct {
		name  string
		holds func(context.Context) error
	}{
		{"facts", r.factsHold},
		{"doctor", r.doctorFindsNone},
		{"quotas", r.quotasAreExact},
		{"operations", r.operationsHaveEnded},
		{"events", r.eventsWereDelivered},
		{"generations", r.generationsGrow},
		{"log-ins", r.loginsLetIn},
		{"refusals", r.refusedAreRefused},
		{"rows", r.rowsAreThere},
		{"backups", r.backupsRestore},
		{"moments", r.momentsRestore},
		{"secrets", r.secretsAreNowhere},
		{"footprint", func(ctx context.Context) error { return r.nothingIsLeft(ctx, round) }},
	} {
		began := time.Now()
		if err := invariant.holds(ctx); err != nil {
			r.broke(invariant.name, "%v", err)
		}
		log.Printf("looked at %s, in %s", invariant.name, time.Since(began).Round(100*time.Millisecond))
	}
}

// factsHold: what answers have promised is so, as the metadata have it. What was not answered is one of what it can be.
func (r *run) factsHold(ctx context.Context) error {
	var wrong error
	for _, t := range r.all(plan.Database, plan.Single) {
		if t.known() == "" {
			wrong = errors.Join(wrong, r.facts.Settle(t.fact(status), ""))
			r.facts.Forget(t.fact(status))
			continue
		}
		const query = "SELECT status, environment, schedule FROM databases WHERE id = $1"
		found, err := r.metadata(ctx, query, t.known())
		if err != nil {
			return err
		}
		if len(found) == 0 {
			wrong = errors.Join(wrong, fmt.Errorf("the database %s of step %d has no record any more", t.name, t.step))
			continue
		}
		for n, fact := range []string{status, environment, schedule} {
			wrong = errors.Join(wrong, r.facts.Settle(t.fact(fact), found[0][n]))
		}
		wrong = errors.Join(wrong, r.listedHold(ctx, t))
	}
	for _, t := range r.all(plan.Role) {
		if t.known() == "" {
			continue
		}
		found, err := r.metadata(ctx, "SELECT status FROM roles WHERE id = $1", t.known())
		if err != nil {
			return err
		}
		for _, row := range found {
			wrong = errors.Join(wrong, r.facts.Settle(t.fact("status"), row[0]))
		}
	}
	return wrong
}

// listedHold: networks, members and backups of a database are listed, or not, as was answered.
func (r *run) listedHold(ctx context.Context, t *thing) error {
	listed := map[string]string{}
	for query, kind := range map[string]string{
		"SELECT cidr::text, 'there' FROM allowlist_entries WHERE database_id = $1":                            network,
		`SELECT u.email, m.role FROM memberships m JOIN users u ON u.id = m.user_id WHERE m.database_id = $1`: "member ",
		"SELECT filename, 'there' FROM backups WHERE database_id = $1":                                        "backup ",
	} {
		found, err := r.metadata(ctx, query, t.known())
		if err != nil {
			return err
		}
		for _, row := range found {
			listed[string(t.fact(kind+row[0]))] = row[1]
		}
	}
	var wrong error
	for _, fact := range r.facts.Known() {
		for _, kind := range []string{network, "member ", "backup "} {
			if strings.HasPrefix(string(fact), string(t.fact(kind))) {
				wrong = errors.Join(wrong, r.facts.Settle(fact, listed[string(fact)]))
			}
		}
	}
	return wrong
}

// doctorFindsNone: what the servers have is what the metadata say, once the agents have swept: they do every minute.
func (r *run) doctorFindsNone(ctx context.Context) error {
	var found error
	for _, s := range []*stack.Stack{r.first, r.second} {
		limit, cancel := context.WithTimeout(ctx, commandTime)
		found = errors.Join(found, until(limit, func() error { return stack.Healthy(limit, s) }))
		cancel()
	}
	return found
}

// quotasAreExact: as many databases are counted as there are, and of each as many bytes of backups. That the files have those
// bytes, backupsRestore finds.
func (r *run) quotasAreExact(ctx context.Context) error {
	var wrong error
	for _, a := range r.accounts {
		const has = `SELECT d.id, d.status, coalesce(sum(b.size_bytes), 0)::text FROM databases d
			LEFT JOIN backups b ON b.database_id = d.id AND b.deleting_at IS NULL AND b.damaged_at IS NULL
				AND (b.trigger <> 'deletion' OR b.expires_at IS NOT NULL) -- that of a deletion counts once it is recovered
			WHERE d.account_id = $1 GROUP BY d.id`
		found, err := r.metadata(ctx, has, a.ID)
		if err != nil {
			return err
		}
		shown, err := r.admin(ctx, "account", "show", "--account", a.ID)
		if err != nil {
			return err
		}
		counted, stored := map[string]string{}, 0
		list, _ := shown["databaseList"].([]any)
		for _, one := range list {
			d, _ := one.(map[string]any)
			counted[answer(d).text("databaseId")] = answer(d).used("backups")
		}
		for _, row := range found {
			if row[1] != string(database.Deleted) {
				stored++
			}
			if said, is := counted[row[0]]; is && said != row[2] {
				wrong = errors.Join(wrong, fmt.Errorf("database %s has %s bytes of backups, and is counted %s", row[0], row[2], said))
			}
		}
		if said := shown.used("databases"); said != fmt.Sprint(stored) {
			wrong = errors.Join(wrong, fmt.Errorf("account %d has %d databases, and is counted %s", a.number+1, stored, said))
		}
	}
	return wrong
}

// used is what is used of a quota that an answer tells of.
func (a answer) used(of string) string {
	fields, _ := a[of].(map[string]any)
	number, _ := fields["used"].(float64)
	return strconv.FormatFloat(number, 'f', -1, 64)
}

// operationsHaveEnded: each operation is final, with one event where its kind has any, and one entry of the log.
func (r *run) operationsHaveEnded(ctx context.Context) error {
	var wrong error
	for what, query := range map[string]string{
		"it is not final": "SELECT id, kind, status FROM operations WHERE status NOT IN ('succeeded', 'failed', 'canceled')",
		"an event tells of another end": `SELECT o.id, o.kind, e.name FROM outbox_events e JOIN operations o ON o.id = e.operation_id
			WHERE e.name <> o.kind || '.' || o.status`,
		"its events are not one": `SELECT o.id, o.kind, count(e.id)::text FROM operations o
			LEFT JOIN outbox_events e ON e.operation_id = o.id AND e.name = o.kind || '.' || o.status
			WHERE o.kind IN ('backup', 'restore', 'clone', 'delete', 'recover', 'extension') AND o.finished_at IS NOT NULL
			GROUP BY o.id HAVING count(e.id) <> 1`,
		"its entries in the log are not one": `SELECT o.id, o.kind, count(a.id)::text FROM operations o LEFT JOIN audit_entries a
			ON a.details->>'operationId' = o.id::text
			AND a.action = CASE o.status WHEN 'canceled' THEN 'operation.canceled' ELSE o.kind || '.finished' END
			WHERE o.kind IN ('backup', 'restore', 'clone', 'extension', 'rescue', 'comparison', 'search', 'move', 'rehearsal')
			GROUP BY o.id HAVING count(a.id) <> 1`,
		"its change is not in the log once": `SELECT o.id, o.kind, count(a.id)::text FROM operations o LEFT JOIN audit_entries a
			ON a.details->>'operationId' = o.id::text
			AND a.action IN ('role.rotated', 'role.revoked', 'role.expired', 'login.rotated')
			WHERE o.kind IN ('rotate', 'revoke', 'expire') AND o.status = 'succeeded' GROUP BY o.id HAVING count(a.id) <> 1`,
		"its database's log does not say so often that it was carried out": `SELECT min(o.id::text), o.kind,
			count(*) || ' operations, ' || coalesce(max(said.times), 0) || ' entries' FROM operations o
			CROSS JOIN LATERAL (SELECT count(*) AS times FROM audit_entries a WHERE a.database_id = o.database_id AND a.action = ANY (
				CASE o.kind WHEN 'create' THEN ARRAY['database.created'] WHEN 'delete' THEN ARRAY['database.deleted']
				ELSE ARRAY['database.started', 'database.stopped', 'database.restarted'] END)) said
			WHERE o.kind IN ('create', 'delete', 'lifecycle') AND o.status = 'succeeded'
			GROUP BY o.database_id, o.kind HAVING count(*) <> max(said.times)`,
	} {
		found, err := r.metadata(ctx, query)
		if err != nil {
			return err
		}
		for _, row := range found {
			wrong = errors.Join(wrong, fmt.Errorf("operation %s, %s: %s (%s)", row[0], row[1], what, row[2]))
		}
	}
	return wrong
}

// eventsWereDelivered: each event has arrived at its account's receiver, signed; and nothing else has.
func (r *run) eventsWereDelivered(ctx context.Context) error {
	var wrong error
	for _, a := range r.accounts {
		const due = `SELECT coalesce(d.id::text, 'of no delivery'), e.name FROM outbox_events e
			LEFT JOIN webhook_deliveries d ON d.event_id = e.id AND d.webhook_id = $2 WHERE e.account_id = $1`
		found, err := r.metadata(ctx, due, a.ID, a.hook.ID)
		if err != nil {
			return err
		}
		missing := map[string]string{}
		for _, row := range found {
			missing[row[0]] = row[1]
		}
		known := len(missing)
		for _, one := range r.receiver.At(a.path()) {
			event := one.Header.Get("Service-Event-Id")
			mac := hmac.New(sha256.New, []byte(a.hook.Secret))
			mac.Write([]byte(one.Header.Get("Service-Timestamp") + "."))
			mac.Write(one.Body)
			if !hmac.Equal([]byte(one.Header.Get("Service-Signature")), []byte("v1="+hex.EncodeToString(mac.Sum(nil)))) {
				wrong = errors.Join(wrong, fmt.Errorf("account %d: event %s is not signed by its secret", a.number+1, event))
			}
			if _, is := missing[event]; !is && !contains(found, event) {
				wrong = errors.Join(wrong, fmt.Errorf("account %d was sent an event %s that is none of its", a.number+1, event))
			}
			delete(missing, event)
		}
		for event, name := range missing {
			wrong = errors.Join(wrong, fmt.Errorf("account %d: of %d events, %s (%s) has not arrived", a.number+1, known, event, name))
		}
	}
	return wrong
}

func contains(rows [][]string, first string) bool {
	for _, row := range rows {
		if row[0] == first {
			return true
		}
	}
	return false
}

// generationsGrow: none is lower than it was after the round before.
func (r *run) generationsGrow(ctx context.Context) error {
	var wrong error
	for what, query := range map[string]string{
		"databases": "SELECT id, allowlist_generation::text, settings_generation::text, role_generation::text FROM databases",
		"roles":     "SELECT id, credential_generation::text FROM roles",
		"logins":    "SELECT username, generation::text FROM database_logins",
		"epochs":    "SELECT id, lease_epoch::text FROM operations",
	} {
		found, err := r.metadata(ctx, query)
		if err != nil {
			return err
		}
		for _, row := range found {
			for n, text := range row[1:] {
				var now int64
				if _, err := fmt.Sscan(text, &now); err != nil {
					return err
				}
				of := fmt.Sprint(what, " ", row[0], " ", n)
				if was := r.generations[of]; now < was {
					wrong = errors.Join(wrong, fmt.Errorf("generation of %s: %d after %d", of, now, was))
				}
				r.generations[of] = now
			}
		}
	}
	return wrong
}

// loginsLetIn: each login that is ready lets its holder in by the password that is shown for it.
func (r *run) loginsLetIn(ctx context.Context) error {
	var wrong error
	for _, t := range r.all(plan.Database, plan.Single, plan.Preview) {
		if t.known() == "" || !r.active(ctx, t) {
			continue
		}
		if err := r.showPasswords(ctx, t); err != nil {
			wrong = errors.Join(wrong, fmt.Errorf("the passwords of %s (step %d): %w", t.name, t.step, err))
		}
		t.everyLogin(func(name string, l *login) {
			if l.Known() == "" {
				return
			}
			if err := r.logsIn(ctx, t, l.username, l.Known()); err != nil {
				wrong = errors.Join(wrong, fmt.Errorf("%s of %s (step %d) does not log in: %w", name, t.name, t.step, err))
			}
		})
	}
	return wrong
}

// active reports whether the metadata have customers let into the database.
func (r *run) active(ctx context.Context, t *thing) bool {
	found, err := r.metadata(ctx, "SELECT status FROM databases WHERE id = $1", t.known())
	return err == nil && len(found) == 1 && found[0][0] == string(database.Active)
}

// showPasswords has every password be shown that can be: of logins that a lost answer has changed, that is how it is known again.
// The owner's is changed anew where it is not known.
func (r *run) showPasswords(ctx context.Context, t *thing) error {
	if t.kind == plan.Database {
		for _, name := range []database.Login{database.RuntimeLogin, database.ReadonlyLogin} {
			shown, err := r.client(t.account, 0).Logins.Reveal(ctx, t.database(), name)
			if err != nil {
				return err
			}
			if err := r.shown(t, string(name), shown.Username, shown.Password); err != nil {
				return err
			}
		}
		if t.login(string(database.OwnerLogin)).Known() == "" {
			changed, err := r.client(t.account, 0).Logins.Rotate(ctx, t.database(), database.OwnerLogin, disconnect)
			if err != nil {
				return err
			}
			r.told(t, string(database.OwnerLogin), t.name, changed.Password)
		}
	}
	for _, role := range r.all(plan.Role) {
		if role.in != t || role.known() == "" {
			continue
		}
		shown, err := r.client(t.account, 0).Roles.Reveal(ctx, t.database(), roleIDOf(role))
		if refused(err) { // it is revoked, removed or was never made
			role.in.login(role.roleName()).Close()
			continue
		}
		if err != nil {
			return err
		}
		if err := r.shown(t, role.roleName(), shown.Username, shown.Password); err != nil {
			return err
		}
	}
	return nil
}

// shown takes a password that was shown while all was quiet. It is an error where it cannot be that one.
func (r *run) shown(t *thing, name, username, password string) error {
	if !t.login(name).May(password) {
		return fmt.Errorf("%s is shown a password that was changed before, or that nobody has asked for", name)
	}
	r.told(t, name, username, password)
	return nil
}

// logsIn is an error unless a login gets in, as itself.
func (r *run) logsIn(ctx context.Context, t *thing, username, password string) error {
	db, err := r.connect(t, username, password)
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(ctx, asked)
	defer cancel()
	var who string
	if err := db.QueryRowContext(ctx, "SELECT current_user").Scan(&who); err != nil {
		return err
	}
	if who != username {
		return fmt.Errorf("%s is in as %s", username, who)
	}
	return nil
}

// refusedAreRefused: no password that was changed lets anybody in, and whoever is in since before is in no more.
func (r *run) refusedAreRefused(ctx context.Context) error {
	var wrong error
	for _, t := range r.all(plan.Database, plan.Single, plan.Preview) {
		open := t.known() != "" && r.active(ctx, t)
		t.everyLogin(func(name string, l *login) {
			if open {
				for _, password := range l.Refused() {
					if err := r.logsIn(ctx, t, l.username, password); err == nil {
						wrong = errors.Join(wrong, fmt.Errorf("%s of %s (step %d) logs in by a password that was changed", name, t.name, t.step))
					}
				}
			}
			for _, h := range l.held {
				limit, cancel := context.WithTimeout(ctx, asked)
				var one int
				err := h.QueryRowContext(limit, "SELECT 1").Scan(&one)
				cancel()
				if err == nil && (!open || !l.May(h.password)) {
					wrong = errors.Join(wrong, fmt.Errorf("%s of %s (step %d) is in by a connection that was to end", name, t.name, t.step))
				}
				wrong = errors.Join(wrong, h.Close())
			}
			l.held = nil
		})
	}
	return wrong
}

// rowsAreThere: each database holds every row whose writing was answered, and none that nobody wrote.
func (r *run) rowsAreThere(ctx context.Context) error {
	var wrong error
	for _, t := range r.all(plan.Database, plan.Single, plan.Preview) {
		owner := t.login(string(database.OwnerLogin))
		if t.known() == "" || owner.Known() == "" || !r.active(ctx, t) {
			continue
		}
		limit, cancel := context.WithTimeout(ctx, asked)
		read, err := r.rows(limit, t, owner)
		cancel()
		if err == nil {
			err = t.rows.Settle(read, time.Now())
		}
		if err != nil {
			wrong = errors.Join(wrong, fmt.Errorf("%s (step %d): %w", t.name, t.step, err))
		}
	}
	return wrong
}

// asks runs a query over a connection of its own.
func asks(ctx context.Context, dsn, query string, args ...any) ([][]string, error) {
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(ctx, asked)
	defer cancel()
	_, found, err := stack.Rows(ctx, db, query, args...)
	return found, err
}
