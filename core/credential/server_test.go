package credential_test

import (
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/search"
	"github.com/pgherd/pgherd/core/credential"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

func TestMain(m *testing.M) { os.Exit(clustertest.Main(m)) }

// The verifier that is computed is the one that PostgreSQL would have made, it is stored as it is, and it lets in who has the
// password and nobody else; of what PostgreSQL has stored, however odd, Matches says yes only to a password that it lets in.
func FuzzVerifierAtTheServer(f *testing.F) { f.Fuzz(verifierAtTheServer) }

func TestSearchVerifierAtTheServer(t *testing.T) { search.Beyond(t, verifierAtTheServer) }

func verifierAtTheServer(t *testing.T, input []byte) {
	if len(input) < 4 {
		t.Skip("is too short")
	}
	r := newRole(t)
	sum := sha256.Sum256(input[1:2])
	salt := [16]byte(sum[:16])
	ascii := asASCII(input[3:])
	ours := credential.Verifier(ascii, salt, 1+16*int(input[1]))
	switch input[0] % 4 {
	case 0:
		if stored := r.set(ours); stored != ours {
			t.Fatalf("%s is stored as %s", ours, stored)
		}
		r.admits(ascii, true)
		r.admits(ascii+"a", false)
	case 1:
		r.madeByTheServer(ascii, true)
	case 2: // of which SASLprep may make another text, as PostgreSQL sees it
		r.madeByTheServer(strings.ToValidUTF8(strings.ReplaceAll(string(input[3:]), "\x00", ""), "\u00ad")+"x", false)
	case 3:
		at, by := int(input[2])%len(ours), asASCII(input[1:2])
		odd := r.set([]string{ours[:at] + by + ours[at:], ours[:at] + ours[at+1:], ours[:at] + by + ours[at+1:]}[int(input[1])%3])
		if credential.Matches(odd, ascii) {
			r.admits(ascii, true)
		}
	}
}

// asASCII is never empty, which is no password.
func asASCII(text []byte) string {
	return strings.Map(func(c rune) rune { return max(1, c&0x7f) }, string(text)) + "a"
}

// role is one of the server, which the tries share.
type role struct {
	*testing.T
	db *sql.DB
}

func newRole(t *testing.T) role {
	t.Helper()
	db := check.Must(sql.Open("postgres", clustertest.Postgres(t).URL("postgres")))(t)
	t.Cleanup(func() {
		_, err := db.Exec("DROP ROLE odd")
		check.NoError(t, errors.Join(err, db.Close()))
	})
	_, err := db.Exec("CREATE ROLE odd LOGIN")
	check.NoError(t, err)
	return role{t, db}
}

// set gives the role a password, or a verifier, and returns what is stored of it.
func (r role) set(password string) (stored string) {
	r.Helper()
	_, err := r.db.Exec("ALTER ROLE odd PASSWORD " + pq.QuoteLiteral(password))
	check.NoError(r, errors.Join(err, r.db.QueryRow("SELECT rolpassword FROM pg_authid WHERE rolname = 'odd'").Scan(&stored)))
	return stored
}

// admits fails the test where the server does not let in, or does, who shows a password.
func (r role) admits(password string, want bool) {
	r.Helper()
	config := check.Must(pgconn.ParseConfig(clustertest.Postgres(r).URLFor("odd", "x", "postgres")))(r)
	config.Password = password
	conn, err := pgconn.ConnectConfig(r.Context(), config)
	if err == nil {
		err = conn.Close(r.Context())
	} else if refused := new(pgconn.PgError); !want && errors.As(err, &refused) && refused.Code == "28P01" {
		return
	}
	if err != nil || !want {
		r.Errorf("%q, which is to be admitted: %t: %v", password, want, err)
	}
}

// madeByTheServer compares what the server stores of a password with what is computed, which is the same where equal says so.
func (r role) madeByTheServer(password string, equal bool) {
	r.Helper()
	theirs := r.set(password)
	_, encoded, _ := strings.Cut(strings.Split(theirs, "$")[1], ":")
	salt := check.Must(base64.StdEncoding.DecodeString(encoded))(r)
	same := credential.Verifier(password, [16]byte(salt), credential.Iterations) == theirs
	if equal {
		r.admits(password, true)
	}
	if same != credential.Matches(theirs, password) || equal && !same {
		r.Errorf("%q is stored as %s, which is the one computed: %t", password, theirs, same)
	}
}
