//go:build packages

package packages

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// program is how a block of docs/use/start.md is run, by the language that it begins with: the file that it is put into, the
// Debian packages that it needs, and the command.
type program struct{ file, packages, run string }

var programs = map[string]program{
	"python": {"tea.py", "python3-psycopg", "python3 tea.py"},
	"js":     {"tea.js", "nodejs node-pg", "node tea.js"},
	"go":     {"main.go", "", "./tea"}, // It is built outside, and static.
	"java":   {"Tea.java", "default-jdk-headless libpostgresql-jdbc-java", "java -cp /usr/share/java/postgresql.jar Tea.java"},
	"php":    {"tea.php", "php-cli php-pgsql", "php tea.php"},
	"ruby":   {"tea.rb", "ruby ruby-pg", "ruby tea.rb"},
}

var fenced = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$")

// customer follows docs/use/start.md, as it is printed, as a user of the machine that runs the service.
func (b booted) customer(t *testing.T) {
	t.Helper()
	const home = "/home/customer"
	b.does(t, `useradd --create-home customer && cd `+home+` && cp /etc/pgherd/ca/ca.crt . && umask 077
		admin() { runuser -u pgherd -- pgherd admin "$@"; }
		export PGHERD_METADATA_URL_FILE=/etc/pgherd/control/metadata-url PGHERD_KEYRING_FILE=/etc/pgherd/control/keyring.json
		admin feature enable additional-roles
		account=$(admin account list --email owner@example.com --json | sed -n 's/.*"accountId":"\([^"]*\)".*/\1/p')
		admin key create --account "$account" --label customer --scope full --json | sed -n 's/.*"apiKey":"\([^"]*\)".*/\1/p' > key.txt
		chown customer: key.txt`)
	as := func(script string) string {
		t.Helper()
		return b.does(t, "cd "+home+` && exec env --ignore-environment HOME="$PWD" PATH=/usr/bin:/bin `+
			"/usr/sbin/runuser -u customer -- bash -euc "+quoted(script))
	}
	var environment string
	seen := map[string]bool{}
	for _, found := range fenced.FindAllStringSubmatch(string(check.Must(os.ReadFile("../../docs/use/start.md"))(t)), -1) {
		language, text := found[1], found[2]
		switch {
		case language == "sh" && strings.Contains(text, "svc connect"):
			environment = text
		case language == "sh":
			if out := as(text); !strings.Contains(out, "(1 row)") {
				t.Errorf("%s\nsays\n%s", text, out)
			}
			as("gunzip --test orders.sql.gz")
		default:
			p, known := programs[language]
			if !known || environment == "" {
				t.Fatalf("nobody knows how to run %s", language)
			}
			seen[language] = true
			if p.packages != "" {
				b.does(t, "apt-get install --yes --no-install-recommends "+p.packages)
			}
			at := filepath.Join(b.root, home, p.file)
			check.NoError(t, os.WriteFile(at, []byte(text), 0o644))
			if language == "go" {
				buildGo(t, text, filepath.Join(filepath.Dir(at), "tea"))
			}
			for _, pooled := range []string{environment, strings.ReplaceAll(environment, "--env", "--env --transaction")} {
				if out := as(pooled + p.run); strings.TrimSpace(out) != "tea" {
					t.Errorf("%s\n%s: it says %q", pooled, p.run, out)
				}
			}
			wrong := strings.ReplaceAll(environment, "; set +a", "; PGSSLROOTCERT=/etc/ssl/certs/ca-certificates.crt; set +a")
			if out := as("if " + wrong + p.run + "; then echo connected; fi 2>&1"); strings.Contains(out, "connected") {
				t.Errorf("%s connects to whom it cannot verify", language)
			}
		}
	}
	if len(seen) != len(programs) {
		t.Errorf("the page has programs in %v", seen)
	}
}

func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// buildGo builds a program with the driver that pgherd itself has, in the version that its go.mod names.
func buildGo(t *testing.T, text, to string) {
	t.Helper()
	folder := t.TempDir()
	root := check.Must(toolchain.Root())(t)
	check.NoError(t, os.WriteFile(filepath.Join(folder, "main.go"), []byte(text), 0o644))
	build := exec.Command("go", "build", "-o", to, filepath.Join(folder, "main.go"))
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
