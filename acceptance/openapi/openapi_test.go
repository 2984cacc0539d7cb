//go:build openapi

package openapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pgherd/pgherd/acceptance/driver"
	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/serve"
)

// typescript is a generator of types, what calls the API by them, and the compiler.
var typescript = []string{"openapi-typescript@7.13.0", "openapi-fetch@0.17.0", "typescript@5.9.3"}

const (
	linter    = "@redocly/cli@2.77.0"
	generator = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2"
	// clientModule is the generated client's; the generator wants this package at run time.
	clientModule = "module client\n\ngo 1.26\n\nrequire github.com/oapi-codegen/runtime v1.8.0\n"
)

// described writes the document, as a host serves it, into a folder of its own.
func described(t *testing.T, host spec.Client) (folder string) {
	t.Helper()
	answer, err := host.Do(t.Context(), apiclient.Request{Method: http.MethodGet, Path: serve.DescriptionPath})
	if err != nil || answer.Status != http.StatusOK {
		t.Fatalf("%d %v", answer.Status, err)
	}
	folder = t.TempDir()
	write(t, filepath.Join(folder, "openapi.json"), answer.Body)
	return folder
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// runs runs a program in a folder, and returns what it prints.
func runs(t *testing.T, folder, program string, args ...string) []byte {
	t.Helper()
	var printed, complained bytes.Buffer
	c := exec.Command(program, args...)
	c.Dir, c.Stdout, c.Stderr = folder, &printed, &complained
	c.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
	if err := c.Run(); err != nil {
		t.Fatalf("%s %v: %v\n%s%s", program, args, err, printed.Bytes(), complained.Bytes())
	}
	return printed.Bytes()
}

// expected is what the linter may find. An upload's ID is no "certificate", and no file of a backup is called "restore-upload".
const (
	expected = `openapi.json:
  no-ambiguous-paths:
    - '#/paths/~1api~1v1~1databases~1{id}~1backups~1{filename}~1certificate'
`
	expectedFindings = 1
)

func TestLinterFindsNothingElse(t *testing.T) {
	folder := described(t, driver.HTTP(t).Hosts[0](""))
	write(t, filepath.Join(folder, ".redocly.lint-ignore.yaml"), []byte(expected))
	if _, err := exec.LookPath("npx"); err != nil {
		t.Fatalf("the linter needs Node.js 22.12 or later, and npx: %v", err)
	}
	report := runs(t, folder, "npx", "--yes", linter, "lint", "--format=json", "openapi.json")
	var found struct {
		Totals *struct{ Errors, Warnings, Ignored int }
	}
	if err := json.Unmarshal(report, &found); err != nil || found.Totals == nil {
		t.Fatalf("%v: %s", err, report)
	}
	if found.Totals.Errors+found.Totals.Warnings > 0 || found.Totals.Ignored != expectedFindings {
		t.Errorf("%s", report)
	}
}

func TestGeneratedClientListsDatabases(t *testing.T) {
	stage := &spec.Stage{TB: t, World: driver.HTTP(t)}
	folder := described(t, stage.Hosts[0](""))
	program, err := os.ReadFile("testdata/client/main.go")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "main.go"), program)
	write(t, filepath.Join(folder, "go.mod"), []byte(clientModule))
	write(t, filepath.Join(folder, "api", "doc.go"), []byte("package api\n"))
	runs(t, folder, "go", "run", generator, "-package", "api", "-generate", "types,client", "-o", "api/api.go", "openapi.json")
	runs(t, folder, "go", "mod", "tidy")

	ada := stage.Customer("pro")
	made := ada.Creates("orders")
	got := runs(t, folder, "go", "run", ".", ada.URL, ada.Key.Text)
	if want := string(made.ID) + " " + made.Name + " active\n"; string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestGeneratedTypesListDatabases(t *testing.T) {
	stage := &spec.Stage{TB: t, World: driver.HTTP(t)}
	folder := described(t, stage.Hosts[0](""))
	for _, name := range []string{"main.ts", "package.json"} {
		text, err := os.ReadFile(filepath.Join("testdata", "typescript", name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(folder, name), text)
	}
	runs(t, folder, "npm", append([]string{"install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"}, typescript...)...)
	runs(t, folder, "npx", "openapi-typescript", "openapi.json", "-o", "api.ts")
	runs(t, folder, "npx", "tsc", "--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom", "main.ts")

	ada := stage.Customer("pro")
	made := ada.Creates("orders")
	got := runs(t, folder, "node", "main.js", ada.URL, ada.Key.Text)
	if want := string(made.ID) + " " + made.Name + " active\n400 VALIDATION_ERROR\n"; string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
