package crash_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/alerts"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// mostLines bounds what a host says of an outage beside its requests: each kind of failure once.
const mostLines = 10

// whileAway is how long the outages of the test last: the periodic work fails several times in it, some of it every half second.
const whileAway = 4 * time.Second

// What the operator is told while a part is away, and that every alert is on something that the hosts export.
func TestOutagesAreToldInAFewLines(t *testing.T) {
	t.Parallel()
	w := startStack(t, func(o *stack.Options) { o.Archive = true })
	g := newLoadedGuest(t, w, "watched")
	must(w.meta.ExecContext(soon(t), "UPDATE databases SET schedule = 'daily', next_backup_at = now() + interval '1 hour'"))(t)
	o := g.startBackup(t, w.api)
	eventually(t, "a backup", func() (bool, string) {
		now := g.operation(t, w.api, o.ID)
		return now.Status == "succeeded", string(now.Status)
	})
	w.agentIs(t, "1")
	for _, name := range []string{
		"postgres_connections", "pgbouncer_resident_memory_bytes", "pgbouncer_longest_wait_seconds", "archive_waiting_bytes",
	} {
		eventually(t, "the agent's first figures", func() (bool, string) {
			return strings.Contains(must(w.AgentMetrics(soon(t), w.agent))(t), "\npgherd_agent_"+name+"{"), "no " + name
		})
	}
	alertsAreOnWhatThereIs(t, w)

	// The agent is away, and there is work for it.
	release := g.holdUp(t)
	w.atWork(t, g.startBackup(t, w.api))
	lines := linesOf(t, w.batch)
	noError(t, w.agent.Kill())
	if _, err := g.addNetwork(t, w.api, elsewhere); err == nil {
		t.Error("an allowlist was changed without the agent")
	}
	w.agentIs(t, "0")
	time.Sleep(whileAway)
	told := lines()
	t.Logf("%d lines while the agent is away", len(told))
	if len(told) > mostLines || !strings.Contains(strings.Join(told, "\n"), "agent.away") {
		t.Errorf("%d lines while the agent is away:\n%s", len(told), strings.Join(told, "\n"))
	}
	var away bool
	noError(t, w.meta.QueryRowContext(soon(t), "SELECT away_since IS NOT NULL AND answered_at IS NOT NULL FROM servers").Scan(&away))
	if !away {
		t.Error("the list of servers does not say that it is away")
	}
	release()
	w.restartAgent(t)
	w.agentIs(t, "1")
	says(t, w.batch, `"msg":"agent.back"`)

	// The metadata are away, and customers ask.
	batch, api := linesOf(t, w.batch), linesOf(t, w.api)
	noError(t, w.Metadata.Stop(soon(t), cluster.Fast))
	for began := time.Now(); time.Since(began) < whileAway; time.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := g.user.at(w.api).Databases.List().Page(ctx, apiclient.Page{})
		cancel()
		if err == nil {
			t.Error("the API answers without the metadata")
		}
	}
	says(t, w.batch, `"msg":"the metadata database does not answer"`)
	says(t, w.api, `"msg":"the metadata database does not answer"`)
	for name, lines := range map[string]func() []string{"batch": batch, "api": api} {
		told := lines()
		t.Logf("%d lines of %s while the metadata are away", len(told), name)
		if len(told) > mostLines || len(told) == 0 {
			t.Errorf("%d lines of %s while the metadata are away:\n%s", len(told), name, strings.Join(told, "\n"))
		}
	}
	noError(t, w.Metadata.Start(context.WithoutCancel(t.Context())))
	says(t, w.batch, "the metadata database answers again")
	says(t, w.api, "the metadata database answers again")
	frozenMetadata(t, w, g)
	w.settled(t)
}

// frozenMetadata stops the metadata without ending them, as a machine that hangs does: however many requests at a time are
// refused soon, and the host says that it is not ready.
func frozenMetadata(t *testing.T, w *world, g guest) {
	t.Helper()
	noError(t, w.Metadata.Freeze())
	defer func() { noError(t, w.Metadata.Thaw()) }()
	for _, limit := range []time.Duration{10 * time.Second, 2 * time.Second} { // until it is known, and then
		var all sync.WaitGroup
		for range 24 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				began := time.Now()
				status, after, err := answered(ctx, g.user, w.api.URL+"/api/v1/databases")
				if err != nil || status != http.StatusServiceUnavailable || after == "" {
					t.Errorf("with hanging metadata: %d, Retry-After %q, %v, after %s", status, after, err, time.Since(began))
				}
			})
		}
		all.Wait()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if status, _, err := answered(ctx, g.user, "http://"+w.api.OpsAddress()+"/readyz"); status != http.StatusServiceUnavailable {
		t.Errorf("/readyz: %d %v", status, err)
	}
}

// answered sends a GET once.
func answered(ctx context.Context, u *user, url string) (status int, after string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Authorization", "Bearer "+u.Key)
	answer, err := u.http.Do(r)
	if err != nil {
		return 0, "", err
	}
	return answer.StatusCode, answer.Header.Get("Retry-After"), answer.Body.Close()
}

// agentIs waits until the batch host has seen that the agent is up, or that it is not.
func (w *world) agentIs(t *testing.T, up string) {
	t.Helper()
	eventually(t, "the agent's metric", func() (bool, string) {
		text, err := w.batch.Metrics(soon(t))
		line := regexp.MustCompile(`(?m)^pgherd_server_agent_up\{.*\} ` + up + `$`)
		return err == nil && line.MatchString(text), fmt.Sprint("is not ", up, err)
	})
}

// says waits until a host's log has a text.
func says(t *testing.T, h *stack.Host, text string) {
	t.Helper()
	eventually(t, "a line of the log", func() (bool, string) {
		return bytes.Contains(must(h.Log())(t), []byte(text)), text
	})
}

// linesOf returns what counts the lines since then that are no requests.
func linesOf(t *testing.T, h *stack.Host) func() []string {
	t.Helper()
	before := len(must(h.Log())(t))
	return func() (list []string) {
		for line := range bytes.Lines(must(h.Log())(t)[before:]) {
			var fields struct{ Level, Msg string }
			if json.Unmarshal(line, &fields) != nil || fields.Level == "warn" || fields.Level == "error" {
				list = append(list, strings.TrimSpace(string(line)))
			}
		}
		return list
	}
}

// series is a line of a scrape.
type series struct {
	metric string
	labels map[string]string
}

var (
	figure = regexp.MustCompile(`(?m)^(\w+)(?:\{(.*)\})? (\S+)$`)
	label  = regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)
)

func seriesOf(t *testing.T, text string) (list []series) {
	t.Helper()
	for _, m := range figure.FindAllStringSubmatch(text, -1) {
		s := series{m[1], map[string]string{}}
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			s.labels[l[1]] = l[2]
		}
		if _, err := strconv.ParseFloat(m[3], 64); err != nil {
			t.Errorf("%s has no number", m[0])
		}
		list = append(list, s)
	}
	return list
}

// alertsAreOnWhatThereIs holds each rule against what the hosts export from the start. Of a counter there must be what the rule
// selects: one that appears with its first failure has not risen.
func alertsAreOnWhatThereIs(t *testing.T, w *world) {
	t.Helper()
	all := seriesOf(t, must(w.api.Metrics(soon(t)))(t)+must(w.batch.Metrics(soon(t)))(t)+must(w.AgentMetrics(soon(t), w.agent))(t))
	for _, r := range must(alerts.Parse(must(os.ReadFile("../../docs/operate/alerts.yml"))(t)))(t) {
		for _, s := range must(alerts.Selectors(r.Expr))(t) {
			named, selected := false, false
			for _, one := range all {
				named = named || one.metric == s.Metric
				selected = selected || one.metric == s.Metric && s.Matches(one.labels)
			}
			if !named || strings.HasSuffix(s.Metric, "_total") && !selected {
				t.Errorf("%s: no host exports %v", r.Alert, s)
			}
		}
	}
	documented(t, all)
	for _, one := range all {
		for _, name := range []string{"database", "account", "databaseId", "accountId"} {
			if one.labels[name] != "" && one.metric != "pgherd_agent_trusted_language" {
				t.Errorf("%s has the label %s", one.metric, name)
			}
		}
	}
}

var named = regexp.MustCompile(`\bpgherd_\w+`)

// notHere is what these hosts do not have: what only some servers have, what takes a setting, and what the dashboard has, whose
// tests look for them.
var notHere = regexp.MustCompile(`^pgherd_(agent_trusted_language$|account_|dashboard_|trace_)`)

// documented compares docs/operate/monitoring.md with what the hosts export.
func documented(t *testing.T, all []series) {
	t.Helper()
	page, there := map[string]alerts.Metric{}, map[string]bool{}
	text := string(must(os.ReadFile("../../docs/operate/monitoring.md"))(t))
	for _, m := range alerts.Documented(text) {
		page[m.Name] = m
	}
	for _, one := range all {
		name := one.metric
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			name = strings.TrimSuffix(name, suffix)
		}
		there[name] = true
		m, is := page[name]
		if !is && strings.HasPrefix(name, "pgherd_") {
			t.Errorf("the page does not have %s", name)
		}
		for _, label := range m.Labels {
			if _, has := one.labels[label]; !has {
				t.Errorf("%s has no label %s", name, label)
			}
		}
	}
	for _, name := range named.FindAllString(text, -1) {
		if !there[name] && !notHere.MatchString(name) {
			t.Errorf("the page has %s, which no host exports", name)
		}
	}
}
