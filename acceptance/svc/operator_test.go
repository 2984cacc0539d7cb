package svc

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/citoken"
	"github.com/pgherd/pgherd/core/id"
)

// orders are what the operator does for a script. NAME is a variable of the script that holds a key, or gets one.
var orders = []verb{
	// Sets $NAME to a full-account key of a new account, $NAME_ACCOUNT to its ID and $NAME_EMAIL to its owner's address.
	{"operator account PLAN NAME", func(r *run, v []string) error {
		account, err := r.Operator.NewAccount(v[0])
		if err != nil {
			return err
		}
		r.ts.Setenv(v[1]+"_ACCOUNT", string(account.ID))
		r.ts.Setenv(v[1]+"_EMAIL", account.Email)
		key, err := r.Operator.NewKey(account)
		return r.keep(v[1], key, err)
	}},
	{"operator key full NAME", func(r *run, v []string) error {
		key, err := r.Operator.NewKey(r.account)
		return r.keep(v[0], key, err)
	}},
	// DATABASES has commas between them.
	{"operator key selected DATABASES NAME", func(r *run, v []string) error {
		var list []id.DatabaseID
		for name := range strings.SplitSeq(v[0], ",") {
			db, err := r.database(name)
			if err != nil {
				return err
			}
			list = append(list, db.ID)
		}
		key, err := r.Operator.NewKey(r.account, list...)
		return r.keep(v[1], key, err)
	}},
	// Of a new namespace, of which $NAME_NAMESPACE is the ID.
	{"operator key ci NAME", func(r *run, v []string) error {
		namespace, err := r.Operator.NewNamespace(r.account)
		if err != nil {
			return err
		}
		r.ts.Setenv(v[0]+"_NAMESPACE", string(namespace))
		key, err := r.Operator.NewCIKeyOf(namespace)
		return r.keep(v[0], key, err)
	}},
	// The key's namespace trusts tokens with the subject from now on.
	{"operator trust NAME SUBJECT", func(r *run, v []string) error {
		namespace := id.NamespaceID(r.ts.Getenv(v[0] + "_NAMESPACE"))
		_, err := r.Operator.AddTrust(namespace, r.Pipelines.Issuer(), tokenAudience, v[1])
		return err
	}},
	// The service sees every client at clientAddress.
	{"operator key bind NAME EXPIRES NETWORKS...", func(r *run, v []string) error {
		return r.Operator.SetKey(r.keys[v[0]], v[1], v[2:]...)
	}},
	{"operator key replace NAME", func(r *run, v []string) error {
		key, err := r.Operator.ReplaceKey(r.keys[v[0]])
		return r.keep(v[0], key, err)
	}},
	{"operator key revoke NAME", func(r *run, v []string) error { return r.Operator.RevokeKey(r.keys[v[0]]) }},
	// ROUTE is "all", or one of those that "pgherd admin enroll" has.
	{"operator enroll DATABASE ROUTE", onDatabase(func(r *run, db spec.Created, v []string) error {
		return r.Operator.Enroll(db.ID, v[0])
	})},
	{"operator feature enable|disable FEATURE", func(r *run, v []string) error {
		return r.Operator.SetFeature(v[1], v[0] == "enable")
	}},
	{"operator legacy-roles activate DATABASE", onDatabase(func(r *run, db spec.Created, _ []string) error {
		return r.Operator.ActivateLegacyRoles(db.ID, true)
	})},
	{"operator legacy-roles deactivate DATABASE", onDatabase(func(r *run, db spec.Created, _ []string) error {
		return r.Operator.ActivateLegacyRoles(db.ID, false)
	})},
	{"operator maintenance on|off", func(r *run, v []string) error { return r.Operator.SetMaintenance(v[0] == "on") }},
	{"operator extensions qualify", func(r *run, _ []string) error { return r.Operator.QualifyExtensions() }},
	{"operator quota DATABASES", func(r *run, v []string) error {
		n, err := strconv.Atoi(v[0])
		return errors.Join(err, r.Operator.SetQuota(r.account, n))
	}},
	{"operator bytes DATABASE BACKUPS", func(r *run, v []string) error {
		database, err := strconv.ParseInt(v[0], 10, 64)
		backups, err2 := strconv.ParseInt(v[1], 10, 64)
		return errors.Join(err, err2, r.Operator.SetBytes(r.account, database, backups))
	}},
	{"operator preview-copies on|off", func(r *run, v []string) error {
		return r.Operator.SetPreviewCopies(r.account, v[0] == "on")
	}},
	{"operator pitr DAYS", func(r *run, v []string) error {
		n, err := strconv.Atoi(v[0])
		return errors.Join(err, r.Operator.SetPITR(r.account, n))
	}},
	// Of a second that is an hour old.
	{"operator drill DATABASE", onDatabase(func(r *run, db spec.Created, _ []string) error {
		return r.Operator.RunDrill(db.ID, r.Clock.Now().Add(-time.Hour).Truncate(time.Second))
	})},
	{"operator validity DURATION", func(r *run, v []string) error {
		d, err := time.ParseDuration(v[0])
		return errors.Join(err, r.Operator.SetCredentialValidity(r.account, d))
	}},
	{"operator open DATABASE", onDatabase(func(r *run, db spec.Created, _ []string) error {
		return r.Operator.OpenDatabase(db.ID, "the customer asked")
	})},
	{"operator member remove DATABASE EMAIL", onDatabase(func(r *run, db spec.Created, v []string) error {
		return r.Operator.RemoveMember(db.ID, v[0])
	})},
	{"operator change end DATABASE CHANGE", onDatabase(func(r *run, db spec.Created, v []string) error {
		_, err := r.Operator.EndChange(db.ID, id.OperationID(v[0]), "the customer asked")
		return err
	})},
	{"operator certificate-key rotate KEY", func(r *run, v []string) error {
		return r.Operator.RotateCertificateKey(id.CertificateKeyID(v[0]))
	}},
}

// tokenAudience is whom the tokens of scripts are for.
const tokenAudience = "https://pgherd.example.org"

// keep puts a key into a variable, and its ID into $NAME_ID.
func (r *run) keep(name string, key spec.Key, err error) error {
	if err != nil {
		return err
	}
	r.keys[name] = key
	r.ts.Setenv(name, key.Text)
	r.ts.Setenv(name+"_ID", string(key.ID))
	return nil
}

// services are what happens to the service and in databases while svc is not looking.
var services = []verb{
	{"clock DURATION", func(r *run, v []string) error {
		d, err := time.ParseDuration(v[0])
		return errors.Join(err, r.Clock.Advance(d))
	}},
	{"batch stop|start", func(r *run, v []string) error {
		if v[0] == "stop" {
			return r.Batch.Stop()
		}
		return r.Batch.Start()
	}},
	{"agent stop|start|full|free|old|new", func(r *run, v []string) error {
		switch v[0] {
		case "stop":
			return r.Agent.Stop()
		case "start":
			return r.Agent.Start()
		case "full", "free":
			return r.Agent.SetFull(v[0] == "full")
		}
		r.OldAgent(v[0] == "old")
		return nil
	}},
	{"archive keep|drop", func(r *run, v []string) error { return r.Archive.Keep(v[0] == "keep") }},
	// What is written in this time from now on, as the clock has it.
	{"archive lose DURATION", func(r *run, v []string) error {
		d, err := time.ParseDuration(v[0])
		return errors.Join(err, r.Archive.Lose(r.Clock.Now(), r.Clock.Now().Add(d)))
	}},
	{"backup hold DATABASE", onDatabase(func(r *run, db spec.Created, _ []string) (err error) {
		r.releaseBackups, err = r.HoldBackup(db)
		return err
	})},
	{"backup release", func(r *run, _ []string) error {
		if r.releaseBackups == nil {
			return errors.New("no backup is held")
		}
		r.releaseBackups()
		r.releaseBackups = nil
		return nil
	}},
	// A restore of a backup that is taken from now on fails its verification.
	{"backup spoil DATABASE", onDatabase(func(r *run, db spec.Created, _ []string) error { return r.Spoil(db) })},
	// Takes so many rows into the database, which do not get smaller when they are compressed.
	{"owner write DATABASE PASSWORD ROWS", onDatabase(func(r *run, db spec.Created, v []string) error {
		rows, err := strconv.Atoi(v[1])
		if err != nil {
			return err
		}
		login := db.Login()
		login.Password = v[0]
		session, err := r.Connect(login)
		if err != nil {
			return err
		}
		defer session.Close()
		return session.Write(madeUp(rows)...)
	})},
	// The role may not connect any more.
	{"owner withdraw DATABASE USERNAME", onDatabase(func(r *run, db spec.Created, v []string) error {
		return r.OnServer.Withdraw(db, v[0])
	})},
	// The role cannot connect when it is made, until "owner withdraw-no-more".
	{"owner withdraw-at-once DATABASE USERNAME", onDatabase(func(r *run, db spec.Created, v []string) (err error) {
		r.endWithdrawal, err = r.OnServer.WithdrawAtOnce(db, v[0])
		return err
	})},
	{"owner withdraw-no-more", func(r *run, _ []string) error {
		if r.endWithdrawal == nil {
			return errors.New("nothing is withdrawn at once")
		}
		return r.endWithdrawal()
	}},
	{"owner sql DATABASE STATEMENT", onDatabase(func(r *run, db spec.Created, v []string) error {
		return r.OnServer.Owner(db, v[0])
	})},
	// So many tables are granted to the role, which cannot be removed then.
	{"owner entangle DATABASE USERNAME TABLES", onDatabase(func(r *run, db spec.Created, v []string) error {
		tables, err := strconv.Atoi(v[1])
		return errors.Join(err, r.OnServer.Entangle(db, v[0], tables))
	})},
	{"owner disentangle DATABASE USERNAME", onDatabase(func(r *run, db spec.Created, v []string) error {
		return r.OnServer.Disentangle(db, v[0])
	})},
	{"owner grow DATABASE BYTES", onDatabase(func(r *run, db spec.Created, v []string) error {
		bytes, err := strconv.ParseInt(v[0], 10, 64)
		return errors.Join(err, r.OnServer.Grow(db, bytes))
	})},
	// The CI system makes another token for a run.
	{"token SUBJECT FILE", func(r *run, v []string) error {
		r.tokens++
		now := r.Clock.Now()
		token := r.Pipelines.Token(citoken.Claims{
			Issuer: r.Pipelines.Issuer(), Subject: v[0], Audience: []string{tokenAudience}, ID: strconv.Itoa(r.tokens),
			IssuedAt: now, ExpiresAt: now.Add(10 * time.Minute),
		})
		return os.WriteFile(r.ts.MkAbs(v[1]), []byte(token+"\n"), 0o600)
	}},
	{"mail EMAIL", func(r *run, v []string) error {
		mail, err := r.lastMail(v[0])
		_, _ = fmt.Fprintf(r.ts.Stdout(), "Subject: %s\n\n%s", mail.Subject, mail.Text)
		return err
	}},
	// The person with this address accepts the invitation that was mailed last.
	{"accept EMAIL", func(r *run, v []string) error {
		mail, err := r.lastMail(v[0])
		if err != nil {
			return err
		}
		name, password := "Bob", "correct horse battery staple"
		_, err = r.Hosts[0]("").Members.AcceptInvitation(context.Background(), wire.AcceptInvitation{
			Token: mail.Token(), Name: &name, Password: &password,
		})
		return err
	}},
	// The next delivery that no "delivery" has had yet.
	{"delivery FILE", func(r *run, v []string) error {
		return eventually("a webhook is delivered", func() (bool, error) {
			list := r.Receivers.Requests("")
			if len(list) == r.delivered {
				return false, nil
			}
			d := list[r.delivered]
			r.delivered++
			_, _ = fmt.Fprintf(r.ts.Stdout(), "Service-Event-Id: %s\nService-Timestamp: %s\nService-Signature: %s\n",
				d.EventID, d.Timestamp, d.Signature)
			return true, os.WriteFile(r.ts.MkAbs(v[0]), d.Body, 0o600)
		})
	}},
}

// onDatabase is a verb about a database, which the first value names.
func onDatabase(do func(r *run, db spec.Created, rest []string) error) func(*run, []string) error {
	return func(r *run, v []string) error {
		db, err := r.database(v[0])
		if err != nil {
			return err
		}
		return do(r, db, v[1:])
	}
}

// lastMail waits until an address has had a mail.
func (r *run) lastMail(to string) (mail spec.Mail, err error) {
	err = eventually("a mail to "+to, func() (bool, error) {
		mails, err := r.Mails(to)
		if len(mails) > 0 {
			mail = mails[len(mails)-1]
		}
		return len(mails) > 0, err
	})
	return mail, err
}

// eventually waits for what the service does in the background.
func eventually(what string, so func() (bool, error)) error {
	for until := time.Now().Add(patience); ; time.Sleep(glance) {
		if ok, err := so(); ok || err != nil {
			return err
		}
		if time.Now().After(until) {
			return fmt.Errorf("still not so: %s", what)
		}
	}
}

const patience, glance = 30 * time.Second, 10 * time.Millisecond

// madeUp are texts of 1000 characters that do not get much smaller when they are compressed.
func madeUp(rows int) (texts []string) {
	stream := rand.NewChaCha8([32]byte{})
	for range rows {
		bytes := make([]byte, 750)
		_, _ = stream.Read(bytes) // it never fails
		texts = append(texts, base64.StdEncoding.EncodeToString(bytes))
	}
	return texts
}
