package single

import (
	"strings"
	"testing"
)

// debiansIni is what Debian's package of PgBouncer brings, as far as it matters.
const debiansIni = `;;; PgBouncer configuration file
[databases]

;; foodb over Unix socket
;foodb =
# bardb =

[users]
;user1 = pool_size=5

[pgbouncer]
logfile = /var/log/postgresql/pgbouncer.log
;%include /etc/pgbouncer/more.ini
`

func TestDatabasesOfPgBouncer(t *testing.T) {
	for ini, want := range map[string]bool{
		debiansIni: false, "": false, strings.Replace(debiansIni, ";foodb", "foodb", 1): true,
		strings.Replace(debiansIni, ";%include", "%include", 1): true, "[DataBases]\r\n* = host=db\r\n": true,
		"[pgbouncer]\nlisten_port = 6432\n[databases]\n": false,
	} {
		if got := hasDatabases(ini); got != want {
			t.Errorf("%v of %s", got, ini)
		}
	}
}

// One that does not run, and is not to run, is nobody's.
func TestAPgBouncerThatIsOffMayHaveDatabases(t *testing.T) {
	d := newDebian(t)
	d.units[debiansPooler] = unit{}
	d.write("/etc/pgbouncer/pgbouncer.ini", "[databases]\nerp = host=10.0.0.7\n")
	d.up(meant)
	d.done(t)
	for _, on := range []unit{{runs: true}, {enabled: true}} {
		d.units[debiansPooler] = on
		d.refused(meant, "pgbouncer.ini has databases")
	}
}
