package postgres_test

import (
	"os"
	"testing"

	"github.com/pressly/goose/v3"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// TestAnUpgradeTakesTheScopeOfCIKeys: before, they said that they reached the whole account. Keys of accounts stay as they are.
func TestAnUpgradeTakesTheScopeOfCIKeys(t *testing.T) {
	db := clustertest.NewDatabase(t)
	provider := check.Must(goose.NewProvider(goose.DialectPostgres, db.Open(t), os.DirFS("migrations")))(t)
	check.Must(provider.UpTo(t.Context(), 19))(t)
	clustertest.Exec(t, db.URL, `
		INSERT INTO users (id, email, name, created_at) VALUES ('00000000-0000-4000-8000-000000000001', 'a@b', 'A', 'epoch');
		INSERT INTO accounts (id, owner_id, plan, created_at)
		SELECT '00000000-0000-4000-8000-000000000002', id, 'pro', 'epoch' FROM users;
		INSERT INTO ci_namespaces (id, account_id, name, created_at)
		SELECT '00000000-0000-4000-8000-000000000003', id, 'main', 'epoch' FROM accounts;
		INSERT INTO api_keys (id, kind, account_id, user_id, namespace_id, label, scope, hash, created_at)
		SELECT k.id, k.kind, n.account_id, u.id, CASE WHEN k.kind = 'ci' THEN n.id END, 'x', 'full', sha256('x'), 'epoch'
		FROM ci_namespaces n, users u, (VALUES ('AAAAAAAA', 'ci'), ('BBBBBBBB', 'account')) k (id, kind)`)
	check.NoError(t, postgres.Migrate(t.Context(), db.URL))
	var scopes string
	row := db.Open(t).QueryRow("SELECT string_agg(kind || ' ' || scope, ', ' ORDER BY id) FROM api_keys WHERE expires_at IS NULL")
	check.NoError(t, row.Scan(&scopes))
	if scopes != "ci selected, account full" {
		t.Errorf("the keys are %s", scopes)
	}
}
