package alerts

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
)

func TestEveryAlertSaysWhyAndWhatToDo(t *testing.T) {
	rules := check.Must(Parse(check.Must(os.ReadFile("../../docs/operate/alerts.yml"))(t)))(t)
	if len(rules) < 20 {
		t.Fatalf("only %d alerts", len(rules))
	}
	for _, r := range rules {
		for _, name := range []string{"summary", "reason", "first_step"} {
			if text := r.Annotations[name]; len(text) < 15 || strings.Contains(text, "\n") {
				t.Errorf("%s: its %s is %q", r.Alert, name, text)
			}
		}
		switch r.Labels["severity"] {
		case "critical", "warning", "info":
		default:
			t.Errorf("%s: severity %q", r.Alert, r.Labels["severity"])
		}
		if s, err := Selectors(r.Expr); err != nil || len(s) == 0 {
			t.Errorf("%s: %v, %v", r.Alert, s, err)
		}
	}
}

// What Alertmanager holds back while something else is told has the names of alerts.
func TestInhibitedAlertsAreThere(t *testing.T) {
	there := map[string]bool{}
	for _, r := range check.Must(Parse(check.Must(os.ReadFile("../../docs/operate/alerts.yml"))(t)))(t) {
		there[r.Alert] = true
	}
	text := check.Must(os.ReadFile("../../docs/operate/alertmanager.yml"))(t)
	named := regexp.MustCompile(`Pgherd\w+`).FindAllString(string(text), -1)
	for _, name := range named {
		if !there[name] {
			t.Errorf("there is no alert %s", name)
		}
	}
	if len(named) < 5 {
		t.Errorf("only %v are named", named)
	}
}

// Whoever is paged reads of which server, where a metric says it.
func TestAlertsNameTheServer(t *testing.T) {
	of := map[string]bool{}
	for _, m := range Documented(string(check.Must(os.ReadFile("../../docs/operate/monitoring.md"))(t))) {
		of[m.Name] = slices.Contains(m.Labels, "server")
	}
	named := 0
	for _, r := range check.Must(Parse(check.Must(os.ReadFile("../../docs/operate/alerts.yml"))(t)))(t) {
		for _, s := range check.Must(Selectors(r.Expr))(t) {
			if !of[s.Metric] {
				continue
			}
			named++
			kept := !strings.Contains(r.Expr, " by (") || strings.Count(r.Expr, " by (") == strings.Count(r.Expr, " by (server")
			if !kept || !strings.Contains(r.Annotations["summary"], "{{ $labels.server }}") {
				t.Errorf("%s: %s is of a server, which it does not name: %s", r.Alert, s.Metric, r.Annotations["summary"])
			}
		}
	}
	if named < 30 {
		t.Errorf("only %d metrics are of servers", named)
	}
}

func TestDocumentedMetrics(t *testing.T) {
	const page = "| metric | what it is |\n| - | - |\n| `pgherd_a{x,y}`, `pgherd_agent_b` | [two](page.md#x) of `them` |\n" +
		"| `other` | none |\nHere `pgherd_c` is mentioned.\n| `pgherd_d` | no end\n"
	want := []Metric{
		{"pgherd_a", []string{"x", "y"}, "two of them"}, {"pgherd_agent_b", []string{"server"}, "two of them"},
	}
	if got := Documented(page); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestSelectors(t *testing.T) {
	for expr, want := range map[string][]Selector{
		"up == 0":             nil,
		"max(pgherd_a) > 3":   {{Metric: "pgherd_a"}},
		`pgherd_a{} - time()`: {{Metric: "pgherd_a"}},
		`sum by (kind) (rate(pgherd_a_total{what="x.y", kind!~"a|\"b\"}"}[5m])) / pgherd_b`: {
			{"pgherd_a_total", []Matcher{{"what", "=", "x.y"}, {"kind", "!~", `a|\"b\"}`}}}, {Metric: "pgherd_b"},
		},
	} {
		if got, err := Selectors(expr); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", expr, got, err)
		}
	}
	for _, wrong := range []string{"sum(pgherd_a", "pgherd_a)", `pgherd_a{x="1}`, "pgherd_a{x}", "pgherd_a{x=1}", "(pgherd_a]"} {
		if got, err := Selectors(wrong); err == nil {
			t.Errorf("%s: %+v", wrong, got)
		}
	}
	some := Selector{"pgherd_a", []Matcher{{"what", "=~", "a.*|b"}, {"kind", "!=", "c"}}}
	for _, c := range []struct {
		labels map[string]string
		want   bool
	}{
		{map[string]string{"what": "abc"}, true}, {map[string]string{"what": "b", "kind": "d"}, true},
		{map[string]string{"what": "ab", "kind": "c"}, false}, {map[string]string{"what": "xa"}, false}, {nil, false},
	} {
		if some.Matches(c.labels) != c.want {
			t.Errorf("%v: %v", c.labels, !c.want)
		}
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	for _, wrong := range []string{
		"groups: [{name: a, rules: [{alert: X, expr: y, fro: 1m}]}]", "groups: [{rules: [{alert: X}]}]",
		"groups: [{name: a, rules: [{alert: X}, {alert: X}]}]", "groups: {", "groups: [{name: a, rules: [{expr: y}]}]",
	} {
		if rules, err := Parse([]byte(wrong)); err == nil {
			t.Errorf("%s: %+v", wrong, rules)
		}
	}
}

// Of an expression of Prometheus, the metrics that are found stand in it.
func FuzzSelectors(f *testing.F) {
	for _, seed := range []string{`a{b="c"}`, `pgherd_a{b=~"c",d!="e"}[5m]`, `pgherd_a{`, `"`, `pgherd_a{x="\"}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		list, err := Selectors(expr)
		for _, s := range list {
			if err != nil || !strings.Contains(expr, s.Metric) {
				t.Errorf("%q: %+v, %v", expr, list, err)
			}
			s.Matches(map[string]string{"b": "c"})
		}
	})
}
