package svc

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// runs are the verbs that run commands. "tty" is a program of its own: see terminalMain.
var runs = []verb{
	{"screens COMMAND ARGS...", func(r *run, v []string) error {
		var shown [2]string
		for i, size := range []string{"80x24", "200x24"} {
			if err := r.ts.Exec("tty", append([]string{size, "-screen"}, v...)...); err != nil {
				return err
			}
			shown[i] = r.ts.ReadFile("stdout")
		}
		if shown[0] != shown[1] {
			return fmt.Errorf("80 columns show\n%s200 columns show\n%s", shown[0], shown[1])
		}
		return nil
	}},
	{"status STATUS COMMAND ARGS...", func(r *run, v []string) error {
		want, err := strconv.Atoi(v[0])
		if err != nil {
			return err
		}
		got := 0
		if err := r.ts.Exec(v[1], v[2:]...); err != nil {
			var exit *exec.ExitError
			if !errors.As(err, &exit) {
				return err
			}
			got = exit.ExitCode()
		}
		switch {
		case got != want:
			return fmt.Errorf("the exit status is %d; want %d", got, want)
		case got != 0 && strings.Contains(r.ts.ReadFile("stderr")+r.ts.ReadFile("stdout"), "\ngoroutine "):
			return errors.New("the command panicked") // which has status 2, too
		}
		return nil
	}},
}

// outputs are the verbs about what commands printed.
var outputs = []verb{
	{"mask", func(r *run, _ []string) error {
		stdout, stderr := r.ts.ReadFile("stdout"), r.ts.ReadFile("stderr")
		r.masks.learn(r.proxy.secretTexts())
		for _, key := range r.keys {
			r.masks.learn([]string{key.Text})
		}
		work := strings.NewReplacer(r.ts.Getenv("WORK"), "$WORK")
		_, _ = fmt.Fprint(r.ts.Stdout(), work.Replace(r.masks.apply(stdout)))
		_, _ = fmt.Fprint(r.ts.Stderr(), work.Replace(r.masks.apply(stderr)))
		return nil
	}},
	{"setenv NAME MEMBER", func(r *run, v []string) error {
		value, err := member(r.ts.ReadFile("stdout"), v[1])
		if err == nil {
			r.ts.Setenv(v[0], value)
		}
		return err
	}},
	// The files of shellOf.
	{"page PAGE", func(r *run, v []string) error {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", "use", v[0]))
		if err != nil {
			return err
		}
		steps, err := shellOf(string(text))
		for name, shell := range steps {
			err = errors.Join(err, os.WriteFile(r.ts.MkAbs(name), []byte(shell), 0o600))
		}
		return err
	}},
	{"setfile NAME FILE", func(r *run, v []string) error {
		r.ts.Setenv(v[0], strings.TrimSpace(r.ts.ReadFile(v[1])))
		return nil
	}},
}

// member finds a member of a JSON text by its path, such as "data.0.id".
func member(text, path string) (string, error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return "", fmt.Errorf("standard output is no JSON: %w", err)
	}
	for name := range strings.SplitSeq(path, ".") {
		var found bool
		switch in := value.(type) {
		case map[string]any:
			value, found = in[name]
		case []any:
			n, err := strconv.Atoi(name)
			if found = err == nil && n >= 0 && n < len(in); found {
				value = in[n]
			}
		}
		if !found || value == nil {
			return "", fmt.Errorf("standard output has no %s in %s", name, path)
		}
	}
	return fmt.Sprint(value), nil
}

// masks replace what differs from run to run. Placeholders have the width of what they stand for, as tables depend on that.
type masks struct {
	numbers map[string]int // of IDs and checksums, without hyphens, in the order in which they were seen
	secrets map[string]bool
}

// varying is what can be told from its form: IDs, also where names hold them without hyphens, checksums and made-up keys of
// repetition; keys of the API; signing secrets; names of previews; addresses of mail that the operator made up; ports of the
// proxy.
var varying = regexp.MustCompile(`[0-9a-f]{64}|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]{32}|` +
	`\b(?:pgh|pghci|whsec)_[0-9A-Za-z_]+|\bpreview-[a-z2-7]{40}\b|\b[0-9a-z]{12}@example\.org|\b127\.0\.0\.1:[0-9]+`)

// learn has texts replaced wherever they stand.
func (m *masks) learn(secrets []string) {
	if m.secrets == nil {
		m.secrets, m.numbers = map[string]bool{}, map[string]int{}
	}
	for _, s := range secrets {
		m.secrets[s] = true
	}
}

func (m *masks) apply(text string) string {
	for s := range m.secrets {
		text = strings.ReplaceAll(text, s, xs(s))
	}
	return varying.ReplaceAllStringFunc(text, func(found string) string {
		switch {
		case strings.HasPrefix(found, "127.0.0.1:"):
			return "127.0.0.1:PORT_"
		case strings.HasPrefix(found, "preview-"):
			return "preview-" + xs(found[len("preview-"):])
		case strings.Contains(found, "@"):
			return fmt.Sprintf("person%06d@example.org", m.number(found))
		case strings.Contains(found, "_"):
			return xs(found)
		}
		compact := strings.ReplaceAll(found, "-", "")
		digits := fmt.Sprintf("%0*d", len(compact), m.number(compact))
		if len(compact) == len(found) {
			return digits
		}
		return digits[:8] + "-" + digits[8:12] + "-" + digits[12:16] + "-" + digits[16:20] + "-" + digits[20:]
	})
}

// number returns that of an ID.
func (m *masks) number(of string) int {
	n, known := m.numbers[of]
	if !known {
		n = len(m.numbers) + 1
		m.numbers[of] = n
	}
	return n
}

// xs hides a text but for the prefix that says what it is.
func xs(text string) string {
	prefix, rest, found := strings.Cut(text, "_")
	if !found {
		return strings.Repeat("x", len(text))
	}
	return prefix + "_" + regexp.MustCompile(`[^_]`).ReplaceAllString(rest, "x")
}
