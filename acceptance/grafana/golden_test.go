package grafana

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/alerts"
	"github.com/pgherd/pgherd/acceptance/check"
)

const file = "../../docs/operate/grafana.json"

func page(t *testing.T) string {
	t.Helper()
	return string(check.Must(os.ReadFile("../../docs/operate/monitoring.md"))(t))
}

// The dashboard has the metrics of the page, which other tests hold against those of the hosts.
func TestGoldenDashboard(t *testing.T) {
	want := check.Must(Make(page(t)))(t)
	if os.Getenv("PGHERD_UPDATE_GOLDEN") != "" {
		check.NoError(t, os.WriteFile(file, want, 0o644))
	}
	if got := check.Must(os.ReadFile(file))(t); string(got) != string(want) {
		t.Errorf(`%s is out of date: run "make generate"`, file)
	}
}

func TestMetricsAndPanelsAreTheSame(t *testing.T) {
	for what, c := range map[string]struct{ page, want string }{
		"a metric without a panel": {page(t) + "| `pgherd_new{server}` | new |\n", "no panel shows pgherd_new"},
		"a panel without a metric": {
			strings.ReplaceAll(page(t), "`pgherd_mails_due`", "`pgherd_mails_other`"), "the page does not describe pgherd_mails_due",
		},
		"a label that is none": {
			strings.Replace(page(t), "`pgherd_brake_on{reason}`", "`pgherd_brake_on`", 1), "pgherd_brake_on has no label reason",
		},
	} {
		if _, err := Make(c.page); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestExpressionsSelectWhatThereIs(t *testing.T) {
	there := map[string]alerts.Metric{}
	for _, m := range alerts.Documented(page(t)) {
		there[m.Name] = m
	}
	for _, q := range Queries("1m") {
		selected, err := alerts.Selectors(q.Expr)
		if err != nil || strings.Contains(q.Expr, "$") {
			t.Errorf("%s: %v", q.Expr, err)
		}
		for _, s := range selected {
			if _, found := there[strings.TrimSuffix(s.Metric, "_bucket")]; !found {
				t.Errorf("%s: there is no %s", q.Expr, s.Metric)
			}
		}
	}
}

// Grafana shows the last of two panels with one ID, and one of two that lie over each other.
func TestPanelsHaveTheirPlaces(t *testing.T) {
	var d dashboard
	check.NoError(t, json.Unmarshal(check.Must(os.ReadFile(file))(t), &d))
	ids, titles := map[int]bool{}, 0
	var look func(list []gridPanel)
	look = func(list []gridPanel) {
		for i, p := range list {
			if ids[p.ID] || p.ID == 0 || p.Title == "" {
				t.Errorf("%q has the ID %d of another", p.Title, p.ID)
			}
			ids[p.ID], titles = true, titles+1
			for _, q := range list[:i] {
				a, b := p.GridPos, q.GridPos
				if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
					t.Errorf("%q lies over %q", p.Title, q.Title)
				}
			}
			look(p.Panels)
		}
	}
	look(d.Panels)
	if titles < 50 {
		t.Errorf("only %d panels", titles)
	}
}
