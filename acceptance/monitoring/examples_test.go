//go:build monitoring && linux

package monitoring

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/grafana"
	"github.com/pgherd/pgherd/acceptance/mailserver"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// alertPatience is more than what it takes from an agent's end until somebody is paged: a look, a scrape, two evaluations a
// minute apart, and the time in which Alertmanager gathers a group.
const alertPatience = 6 * time.Minute

// followExamples runs a pgherd and what watches it.
func followExamples(t *testing.T) {
	folder := stacktest.Dir(t)
	mails := check.Must(mailserver.Listen(mailserver.Options{Dir: folder, Certified: []string{"mail.example.com"}}))(t)
	t.Cleanup(func() { check.NoError(t, mails.Close()) })
	m := newMachine(t, mails.CAFile)
	go forward(listen(t, "mail.example.com", "25"), mails.Address)
	called := newPager(t)
	m.start(t, "/usr/sbin/rsyslogd", "-n", "-iNONE")
	m.start(t, "/usr/bin/prometheus-alertmanager", "--config.file=/etc/prometheus/alertmanager.yml",
		"--storage.path=/tmp/alertmanager", "--cluster.listen-address=")

	s := stacktest.Start(t.Context(), t, stack.Options{
		AgentFlags: []string{"--server-name=first", "--ops-listen=" + net.JoinHostPort(addresses["db1"], "8091")},
	})
	api := check.Must(s.StartAPI(t.Context(), "", "--default-schedule=daily"))(t)
	batch := check.Must(s.StartBatch(t.Context(), "", "--account-metrics=5"))(t)
	go forward(listen(t, "api1", "8081"), api.OpsAddress())
	go forward(listen(t, "api1", "8082"), batch.OpsAddress())
	pages := check.Must(s.StartDashboard(t.Context()))(t)
	go forward(listen(t, "api1", "8084"), pages.OpsAddress())
	for unit, p := range map[string]*stack.Process{
		"pgherd-api": api.Process, "pgherd-batch": batch.Process, "pgherd-agent": s.FirstAgent(),
	} {
		m.journal(t, unit, p)
	}
	m.start(t, "/usr/bin/prometheus", "--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/tmp/prometheus")

	op, requestID := backUp(t, s, api)
	linesArrive(t, folder, op, requestID)
	everythingIsScraped(t)
	rulesAreEvaluated(t)
	panelsShowSomething(t)

	check.NoError(t, s.FirstAgent().Kill())
	mailArrives(t, mails)
	called.await(t, "PgherdAgentAway", "first")
	restIsInhibited(t)
}

// backUp makes a database and a backup, and asks for the operation by a request whose ID it returns.
func backUp(t *testing.T, s *stack.Stack, api *stack.Host) (op, requestID string) {
	t.Helper()
	account := check.Must(s.NewAccount(t.Context(), "watched", "pro", 1))(t)
	client := check.Must(stack.Client(api.URL, account.Key, nil))(t)
	made := check.Must(client.Databases.Create(t.Context(), wire.CreateDatabase{Name: "shop", DisplayName: "Shop"}))(t)
	check.Eventually(t, "the database", func() bool {
		d, err := client.Databases.Get(t.Context(), made.ID)
		return err == nil && d.Status == database.Active
	})
	started := check.Must(client.Backups.Start(t.Context(), made.ID))(t)
	ended := check.Must(client.Operations.Await(t.Context(), started.Operation.ID, 100*time.Millisecond))(t)
	if ended.Status != operation.Succeeded {
		t.Fatalf("the backup is %s", ended.Status)
	}
	r := check.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, api.URL+"/api/v1/operations/"+string(ended.ID), nil))(t)
	r.Header.Set("Authorization", "Bearer "+account.Key)
	answer := check.Must(http.DefaultClient.Do(r))(t)
	check.NoError(t, answer.Body.Close())
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("the operation: %s", answer.Status)
	}
	return string(ended.ID), answer.Header.Get("X-Request-Id")
}

// linesArrive starts the log server, for which lines wait by now, and looks for that of a request, and for one of the operation
// that a batch host worked on.
func linesArrive(t *testing.T, folder, op, requestID string) {
	t.Helper()
	files := check.Must(check.Must(cluster.OpenCA(folder))(t).Issue("logs", "logs.example.com"))(t)
	pair := check.Must(tls.LoadX509KeyPair(files.CertFile, files.KeyFile))(t)
	server := tls.NewListener(listen(t, "logs.example.com", "6514"), &tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
	})
	var mu sync.Mutex
	var arrived []map[string]any
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					var fields map[string]any
					err := json.Unmarshal(lines.Bytes(), &fields)
					mu.Lock()
					if err != nil {
						fields = map[string]any{"no JSON": lines.Text()}
					}
					arrived = append(arrived, fields)
					mu.Unlock()
				}
			}()
		}
	}()
	has := func(want map[string]any) bool {
		mu.Lock()
		defer mu.Unlock()
		for _, fields := range arrived {
			all := fields["machine"] != nil && fields["machine"] != "" && fields["at"] != nil
			for name, value := range want {
				all = all && fields[name] == value
			}
			if all {
				return true
			}
		}
		return false
	}
	t.Cleanup(func() {
		if t.Failed() {
			mu.Lock()
			defer mu.Unlock()
			t.Logf("%d lines have arrived: %v", len(arrived), arrived[:min(20, len(arrived))])
		}
	})
	for what, want := range map[string]map[string]any{
		"the request": {
			"program": "pgherd-api", "msg": "request", "requestId": requestID, "operationId": op, "status": 200.0,
			"route": "/api/v1/operations/{id}",
		},
		"the operation": {"program": "pgherd-batch", "msg": "operation.succeeded", "operationId": op, "kind": "backup"},
		"an agent":      {"program": "pgherd-agent", "server": "first"},
	} {
		await(t, 2*time.Minute, "the line of "+what, func() bool { return has(want) })
	}
}

// prometheus asks Prometheus something.
func prometheus[T any](t *testing.T, path string, query url.Values) (data T, err error) {
	t.Helper()
	at := "http://127.0.0.1:9090/api/v1/" + path + "?" + query.Encode()
	r := check.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil))(t)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return data, err
	}
	defer answer.Body.Close()
	var body struct {
		Status, Error string
		Data          T
	}
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		return data, err
	}
	if body.Status != "success" {
		return data, fmt.Errorf("%s: %s", body.Status, body.Error)
	}
	return body.Data, nil
}

type samples struct {
	Result []struct {
		Metric map[string]string
		Value  [2]any
	}
}

func everythingIsScraped(t *testing.T) {
	t.Helper()
	await(t, 2*time.Minute, "four targets that are scraped twice", func() bool {
		up, err := prometheus[samples](t, "query", url.Values{"query": {`count_over_time(up{job="pgherd"}[1h]) > 2 and up == 1`}})
		return err == nil && len(up.Result) == 4
	})
}

// rulesAreEvaluated looks for errors in the rules and in what their texts say, and for alerts where all is well.
func rulesAreEvaluated(t *testing.T) {
	t.Helper()
	type rules struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError, State string }
		}
	}
	found := check.Must(prometheus[rules](t, "rules", nil))(t)
	n := 0
	for _, g := range found.Groups {
		for _, r := range g.Rules {
			n++
			if r.Health != "ok" {
				t.Errorf("%s is %s: %s", r.Name, r.Health, r.LastError)
			}
		}
	}
	if n < 50 {
		t.Errorf("only %d rules", n)
	}
}

// unseen is what this pgherd has not, or not yet: alerts, somebody who reads pages, an archive, languages, traces.
var unseen = regexp.MustCompile(`ALERTS|pgherd_dashboard_re|archive|drill|trusted_language|trace_spans`)

// panelsShowSomething asks for what each panel of the dashboard does. Some figures are found once a minute.
func panelsShowSomething(t *testing.T) {
	t.Helper()
	for _, q := range grafana.Queries("1m") {
		var got samples
		ask := func() bool {
			var err error
			got, err = prometheus[samples](t, "query", url.Values{"query": {q.Expr}})
			check.NoError(t, err, q.Expr)
			return len(got.Result) > 0
		}
		if ask(); unseen.MatchString(q.Expr) {
			continue
		}
		await(t, 2*time.Minute, "answer to "+q.Expr, ask)
		for _, label := range q.By {
			if got.Result[0].Metric[label] == "" {
				t.Errorf("%s has no %s", q.Expr, label)
			}
		}
	}
}

// pager is who is called by the webhook.
type pager struct {
	mu    sync.Mutex
	calls []call
}

type call struct {
	Receiver, Status string
	Alerts           []struct {
		Status              string
		Labels, Annotations map[string]string
	}
}

func newPager(t *testing.T) *pager {
	t.Helper()
	p := &pager{}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var c call
		if err := json.NewDecoder(r.Body).Decode(&c); err != nil || r.URL.Path != "/pgherd" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.calls = append(p.calls, c)
	})}
	ln := listen(t, "pager.example.com", "80")
	go func() { _ = server.Serve(ln) }()
	return p
}

// await waits until somebody was paged for an alert on a server.
func (p *pager) await(t *testing.T, alert, server string) {
	t.Helper()
	await(t, alertPatience, "the page "+alert, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, c := range p.calls {
			for _, a := range c.Alerts {
				if a.Labels["alertname"] == alert && a.Labels["server"] == server && a.Status == "firing" {
					if c.Receiver != "pager" || !strings.Contains(a.Annotations["summary"], server) || a.Annotations["first_step"] == "" {
						t.Errorf("the page says %+v", c)
					}
					return true
				}
			}
		}
		return false
	})
}

const alertmanager = "http://127.0.0.1:9093/api/v2/alerts"

// send gives Alertmanager an alert, as Prometheus does.
func send(t *testing.T, labels map[string]string) {
	t.Helper()
	body := check.Must(json.Marshal([]map[string]any{{"labels": labels}}))(t)
	r := check.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, alertmanager, bytes.NewReader(body)))(t)
	r.Header.Set("Content-Type", "application/json")
	answer := check.Must(http.DefaultClient.Do(r))(t)
	check.NoError(t, answer.Body.Close())
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("Alertmanager: %s", answer.Status)
	}
}

func mailArrives(t *testing.T, mails *mailserver.Server) {
	t.Helper()
	send(t, map[string]string{"alertname": "PgherdTried", "severity": "warning", "server": "another"})
	await(t, 2*time.Minute, "the mail", func() bool {
		for _, a := range mails.Arrivals() {
			if strings.Contains(a.To, "operators@example.com") && bytes.Contains(a.Raw, []byte("PgherdTried")) && a.Secured {
				return true
			}
		}
		return false
	})
}

// restIsInhibited looks whether Alertmanager holds back what follows from an agent that is away, and nothing else.
func restIsInhibited(t *testing.T) {
	t.Helper()
	want := map[[2]string]string{
		{"PgherdBackupsOverdue", "first"}:  "suppressed",
		{"PgherdBackupsOverdue", "second"}: "active",
		{"PgherdBackupDamaged", "first"}:   "active",
	}
	for of := range want {
		send(t, map[string]string{"alertname": of[0], "severity": "critical", "server": of[1]})
	}
	await(t, time.Minute, "what Alertmanager makes of them", func() bool {
		r := check.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, alertmanager, nil))(t)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		var list []struct {
			Labels map[string]string
			Status struct{ State string }
		}
		if json.NewDecoder(answer.Body).Decode(&list) != nil {
			return false
		}
		as := 0
		for _, a := range list {
			if state, sent := want[[2]string{a.Labels["alertname"], a.Labels["server"]}]; sent && state == a.Status.State {
				as++
			}
		}
		return as == len(want)
	})
}

func await(t *testing.T, most time.Duration, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), most)
	defer cancel()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("there is no %s in %s", what, most)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
