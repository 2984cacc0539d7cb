package credential_test

import (
	"encoding/base64"
	"os"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/core/credential"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

func TestMain(m *testing.M) { os.Exit(clustertest.Main(m)) }

// PostgreSQL's own verifier of a password, computed again here with its salt, is the same text.
func TestEqualToTheServersOwn(t *testing.T) {
	db := clustertest.NewDatabase(t).Open(t)
	for _, password := range []string{"pencil", "with 'quotes' and $ and : in it", strings.Repeat("x", 200)} {
		for _, statement := range []string{
			`SET password_encryption = 'scram-sha-256'`, `DROP ROLE IF EXISTS verifier_test`,
			`CREATE ROLE verifier_test PASSWORD '` + strings.ReplaceAll(password, "'", "''") + `'`,
		} {
			if _, err := db.Exec(statement); err != nil {
				t.Fatal(err)
			}
		}
		var theirs string
		if err := db.QueryRow(`SELECT rolpassword FROM pg_authid WHERE rolname = 'verifier_test'`).Scan(&theirs); err != nil {
			t.Fatal(err)
		}
		encoded := strings.Split(strings.Split(theirs, "$")[1], ":")[1]
		var salt [16]byte
		if raw, err := base64.StdEncoding.DecodeString(encoded); err != nil || copy(salt[:], raw) != 16 {
			t.Fatalf("salt of %s: %v", theirs, err)
		}
		if ours := credential.Verifier(password, salt, credential.Iterations); ours != theirs || !credential.Matches(theirs, password) {
			t.Errorf("ours %s\ntheirs %s", ours, theirs)
		}
	}
	if _, err := db.Exec(`DROP ROLE verifier_test`); err != nil {
		t.Fatal(err)
	}
}
