package acceptance

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// folder is one that terraform works in, against a development host.
type folder struct {
	*testing.T

	dir, said string // said has what terraform has printed and traced
	rc        string // terraform's own configuration
	url       string // of the service, or of a relay to it
	program   string
	runs      int
	dev       *stack.Dev
	api       *apiclient.Client
	// secrets are in nothing that terraform says, and in no plan or state; told are in the state, and nowhere else.
	secrets, told map[string]string
}

// opened starts a development host, and gives a folder in which this provider is used as it is here.
func opened(t *testing.T) *folder {
	t.Helper()
	state := t.TempDir()
	check.NoError(t, os.Chmod(state, 0o755)) // PostgreSQL's system user passes through it
	f := &folder{
		T: t, dir: t.TempDir(), said: t.TempDir(), program: filepath.Join(state, "pgherd"),
		secrets: map[string]string{}, told: map[string]string{},
	}
	t.Chdir(filepath.Join("..", "..", "..")) // out of this module, to the tools of the one around it
	root := check.Must(toolchain.Root())(t)
	built(t, root, f.program, "./hosts/pgherd")
	built(t, filepath.Join(root, "hosts", "terraform"), filepath.Join(state, "terraform-provider-pgherd"), ".")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	f.dev = check.Must(stack.StartDev(ctx, stack.DevOptions{
		Dir: state, Binary: f.program, Flags: []string{"--allow-private-webhooks"}, // so that no host needs to be looked up
	}))(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := f.dev.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	f.url = f.dev.URL
	f.secrets["the API key"] = f.dev.Facts["SVC_API_KEY"]
	f.api = check.Must(apiclient.New(apiclient.Config{URL: f.dev.URL, Key: f.dev.Facts["SVC_API_KEY"], Patience: time.Minute}))(t)
	const here = "provider_installation {\n  dev_overrides { \"pgherd/pgherd\" = %q }\n  direct {}\n}\n"
	f.rc = filepath.Join(state, "terraformrc")
	check.NoError(t, os.WriteFile(f.rc, fmt.Appendf(nil, here, state), 0o600))
	return f
}

// beside is another folder against the same host, with a configuration and a state of its own.
func (f *folder) beside(configuration string) *folder {
	f.Helper()
	other := *f
	other.dir, other.said, other.told = f.TempDir(), f.TempDir(), map[string]string{}
	other.writes("main.tf", configuration)
	return &other
}

func built(t *testing.T, in, to, what string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "go", "build", "-o", to, what)
	c.Dir = in
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func (f *folder) writes(name, text string) {
	f.Helper()
	check.NoError(f, os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600))
}

// admin runs a command of the operator, and returns its answer.
func (f *folder) admin(args ...string) (answer map[string]any) {
	f.Helper()
	c := exec.CommandContext(f.Context(), f.program, append([]string{"admin", "--json"}, args...)...)
	c.Env = f.dev.OperatorEnvironment()
	out, err := c.Output()
	if err == nil {
		err = json.Unmarshal(out, &answer)
	}
	if err != nil {
		f.Errorf("pgherd admin %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return answer
}

// with is terraform with other variables in its environment.
type with map[string]string

// command is a run of terraform. What it traces is kept.
func (f *folder) command(env with, args ...string) *exec.Cmd {
	f.runs++
	trace := filepath.Join(f.said, fmt.Sprintf("%03d.trace", f.runs))
	c := exec.CommandContext(f.Context(), "terraform", append(slices.Clone(args), "-no-color")...)
	c.Dir = f.dir
	all := map[string]string{
		"TF_CLI_CONFIG_FILE": f.rc, "TF_IN_AUTOMATION": "1", "TF_INPUT": "0", "CHECKPOINT_DISABLE": "1",
		"TF_LOG": "TRACE", "TF_LOG_PATH": trace, "SVC_BASE_URL": f.url, "SVC_API_KEY": f.dev.Facts["SVC_API_KEY"],
	}
	maps.Copy(all, env)
	c.Env = os.Environ()
	for name, value := range all {
		c.Env = append(c.Env, name+"="+value)
	}
	return c
}

// try runs terraform and returns what it prints, which is kept.
func (f *folder) try(env with, args ...string) (string, error) {
	c := f.command(env, args...)
	began := time.Now()
	out, err := c.CombinedOutput()
	f.Logf("terraform %s: %v", strings.Join(args, " "), time.Since(began).Round(100*time.Millisecond))
	check.NoError(f, os.WriteFile(filepath.Join(f.said, fmt.Sprintf("%03d.out", f.runs)), out, 0o600))
	return string(out), err
}

func (f *folder) runsWell(args ...string) string {
	f.Helper()
	out, err := f.try(nil, args...)
	if err != nil {
		f.Fatalf("terraform %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (f *folder) applies(args ...string) {
	f.Helper()
	f.runsWell(append([]string{"apply", "-auto-approve"}, args...)...)
}

// fails expects an error that says something, and that the state stays as it is.
func (f *folder) fails(env with, says string, args ...string) {
	f.Helper()
	before := f.known()
	out, err := f.try(env, args...)
	if err == nil || !strings.Contains(inOneLine(out), says) {
		f.Errorf("terraform %s: %v; it lacks %q\n%s", strings.Join(args, " "), err, says, out)
	}
	if !reflect.DeepEqual(before, f.known()) {
		f.Errorf("terraform %s has changed the state", strings.Join(args, " "))
	}
}

// inOneLine is a text without the frame and the line ends that terraform puts it into.
func inOneLine(text string) string {
	return strings.Join(strings.Fields(strings.NewReplacer("│", " ", "╷", " ", "╵", " ").Replace(text)), " ")
}

var planned = regexp.MustCompile(`(?m)^  # (\S+) (?:will be|must be|is tainted)`)

// plans expects a plan that changes these resources, and nothing else.
func (f *folder) plans(changed ...string) {
	f.Helper()
	f.plansWith(nil, changed...)
}

func (f *folder) plansWith(args []string, changed ...string) {
	f.Helper()
	out, err := f.try(nil, append([]string{"plan", "-detailed-exitcode"}, args...)...)
	var ended *exec.ExitError
	if err != nil && (!errors.As(err, &ended) || ended.ExitCode() != 2) {
		f.Fatalf("terraform plan: %v\n%s", err, out)
	}
	var got []string
	for _, m := range planned.FindAllStringSubmatch(out, -1) {
		if !slices.Contains(got, m[1]) && !strings.HasPrefix(m[1], "data.") {
			got = append(got, m[1])
		}
	}
	want := slices.Compact(slices.Sorted(slices.Values(changed)))
	slices.Sort(got)
	if !slices.Equal(got, want) || (err == nil) != (len(want) == 0) {
		f.Errorf("the plan changes %q, not %q\n%s", got, want, out)
	}
}

const stateFile = "terraform.tfstate"

func (f *folder) state() []byte {
	text, err := os.ReadFile(filepath.Join(f.dir, stateFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		f.Fatal(err)
	}
	return text
}

// known is what a state says, whenever it was written: without its number, and without the list of what is sensitive, which has
// another order each time.
func (f *folder) known() (text map[string]any) {
	f.Helper()
	state := f.state()
	if len(state) == 0 {
		return nil
	}
	check.NoError(f, json.Unmarshal(state, &text))
	delete(text, "serial")
	for _, r := range text["resources"].([]any) {
		for _, one := range r.(map[string]any)["instances"].([]any) {
			delete(one.(map[string]any), "sensitive_attributes")
		}
	}
	return text
}

// instance is a resource of a state; text is the whole state, in which its attributes can be changed.
func (f *folder) instance(address string) (attributes, text map[string]any) {
	f.Helper()
	check.NoError(f, json.Unmarshal(f.state(), &text))
	for _, r := range text["resources"].([]any) {
		r := r.(map[string]any)
		for _, one := range r["instances"].([]any) {
			one := one.(map[string]any)
			name := fmt.Sprintf("%s.%s", r["type"], r["name"])
			if key, has := one["index_key"]; has {
				name += fmt.Sprintf("[%q]", key)
			}
			if name == address && r["mode"] == "managed" {
				return one["attributes"].(map[string]any), text
			}
		}
	}
	f.Fatalf("the state has no %s", address)
	return nil, nil
}

// attribute is one of a resource in the state; empty where it is null.
func (f *folder) attribute(address, name string) string {
	f.Helper()
	attributes, _ := f.instance(address)
	if text, is := attributes[name].(string); is {
		return text
	}
	return ""
}

// edited has a state in which somebody has changed an attribute by hand, or removed it, while a function looks.
func (f *folder) edited(address, name string, value any, look func()) {
	f.Helper()
	was := f.state()
	attributes, text := f.instance(address)
	if attributes[name] = value; value == nil {
		delete(attributes, name)
	}
	edited := check.Must(json.MarshalIndent(text, "", "  "))(f)
	f.writes(stateFile, string(edited))
	look()
	f.writes(stateFile, string(was))
}

// saysNoSecret looks for secrets in all that terraform has said, and in all that it keeps.
func (f *folder) saysNoSecret() {
	f.Helper()
	f.lacks(f.said, f.secrets)
	f.lacks(f.said, f.told)
	f.lacks(f.dir, f.secrets)
}

func (f *folder) lacks(dir string, secrets map[string]string) {
	f.Helper()
	for _, file := range check.Must(os.ReadDir(dir))(f) {
		text := check.Must(os.ReadFile(filepath.Join(dir, file.Name())))(f)
		if packed, err := zip.NewReader(bytes.NewReader(text), int64(len(text))); err == nil { // a plan
			for _, part := range packed.File {
				text = append(text, check.Must(io.ReadAll(check.Must(part.Open())(f)))(f)...)
			}
		}
		for what, secret := range secrets {
			if at := bytes.Index(text, []byte(secret)); secret != "" && at >= 0 {
				f.Errorf("%s has %s: %s", file.Name(), what, around(text, at, len(secret)))
			}
		}
	}
}

// around is what stands beside a secret.
func around(text []byte, at, length int) string {
	return string(text[max(0, at-200):at]) + "..." + string(text[at+length:min(len(text), at+length+50)])
}
