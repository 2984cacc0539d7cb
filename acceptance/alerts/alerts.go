// Package alerts reads docs/operate/alerts.yml, so that tests can hold it against what the hosts export.
package alerts

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/oasdiff/yaml"
)

// Rule is one alert.
type Rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

type file struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []Rule `json:"rules"`
	} `json:"groups"`
}

func strict(d *json.Decoder) *json.Decoder {
	d.DisallowUnknownFields()
	return d
}

// Parse returns all rules of a file, and an error for what Prometheus would not take: an unknown field, a group or rule without a
// name, or two of one name.
func Parse(text []byte) (rules []Rule, err error) {
	var f file
	if _, err := yaml.Unmarshal(text, &f, yaml.DecodeOpts{}, strict); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, g := range f.Groups {
		for _, r := range g.Rules {
			if g.Name == "" || r.Alert == "" || names[r.Alert] {
				return nil, fmt.Errorf("group %q: alert %q has no name of its own", g.Name, r.Alert)
			}
			names[r.Alert] = true
			rules = append(rules, r)
		}
	}
	return rules, nil
}

// Selector is a metric that an expression names, with the matchers of its labels as they stand there.
type Selector struct {
	Metric   string
	Matchers []Matcher
}

// Matcher is a condition on a label.
type Matcher struct{ Label, Op, Value string }

// Holds reports whether a label's value meets the condition.
func (m Matcher) Holds(value string) bool {
	switch m.Op {
	case "=":
		return value == m.Value
	case "!=":
		return value != m.Value
	}
	whole, err := regexp.Compile("^(?:" + m.Value + ")$")
	return err == nil && whole.MatchString(value) == (m.Op == "=~")
}

// Matches reports whether a series of the metric is meant.
func (s Selector) Matches(labels map[string]string) bool {
	return !slices.ContainsFunc(s.Matchers, func(m Matcher) bool { return !m.Holds(labels[m.Label]) })
}

var (
	word    = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*`)
	matcher = regexp.MustCompile(`^\s*([a-zA-Z_]\w*)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"\s*,?`)
)

// Selectors lists what an expression selects of this product: names that begin with pgherd_. It returns an error for brackets
// that do not match and for matchers that are none.
func Selectors(expr string) (list []Selector, err error) {
	if err := balanced(expr); err != nil {
		return nil, err
	}
	for rest := expr; ; {
		at := word.FindStringIndex(rest)
		if at == nil {
			return list, nil
		}
		s := Selector{Metric: rest[at[0]:at[1]]}
		rest = rest[at[1]:]
		if !strings.HasPrefix(s.Metric, "pgherd_") {
			continue
		}
		if strings.HasPrefix(rest, "{") {
			if s.Matchers, rest, err = matchers(rest[1:]); err != nil {
				return nil, fmt.Errorf("%s: %w", s.Metric, err)
			}
		}
		list = append(list, s)
	}
}

func matchers(text string) (list []Matcher, rest string, err error) {
	for {
		if rest, ended := strings.CutPrefix(strings.TrimLeftFunc(text, unicode.IsSpace), "}"); ended {
			return list, rest, nil
		}
		m := matcher.FindStringSubmatch(text)
		if m == nil {
			return nil, "", fmt.Errorf("%q is no matcher", text)
		}
		list, text = append(list, Matcher{m[1], m[2], m[3]}), text[len(m[0]):]
	}
}

var opens = map[rune]rune{')': '(', ']': '[', '}': '{'}

// balanced checks brackets outside of strings.
func balanced(expr string) error {
	var stack []rune
	quoted, escaped := false, false
	for _, r := range expr {
		switch {
		case escaped:
			escaped = false
		case quoted && r == '\\':
			escaped = true
		case r == '"':
			quoted = !quoted
		case quoted:
		case strings.ContainsRune("([{", r):
			stack = append(stack, r)
		case opens[r] != 0:
			if len(stack) == 0 || stack[len(stack)-1] != opens[r] {
				return fmt.Errorf("%q has a %c too many", expr, r)
			}
			stack = stack[:len(stack)-1]
		}
	}
	if len(stack) > 0 || quoted {
		return fmt.Errorf("%q does not end", expr)
	}
	return nil
}
