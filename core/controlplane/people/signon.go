package people

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/token"
	"github.com/pgherd/pgherd/ports"
)

// SigningOn is a sign-on that has begun: where the browser is sent, and a token that belongs into a cookie until it is back. The
// cookie is HttpOnly, SameSite=Lax (the browser comes back from another site), ends after person.SignOnTime, and is deleted when
// the browser is back.
type SigningOn struct{ URL, Token string }

// Returned is what a browser comes back with from the issuer: the token of its cookie, and what the URL has.
type Returned struct {
	Token       string
	State, Code string
	Issuer      string // "iss"
	Refusal     string // "error"; nothing else that an issuer says in a URL is looked at
}

// SignOnRules are what the installation makes of sign-ons, and whether it has an issuer.
func (p *People) SignOnRules() (rules person.SignOnRules, has bool) {
	return p.base.SignOnRules, p.base.SignOn.Issuer() != person.Issuer{}
}

// beginSignOn makes a sign-on, of which nothing is stored.
func (p *People) beginSignOn(ctx context.Context, in id.SessionID, factor bool) (SigningOn, error) {
	text, hash := base.NewToken(p.base.Entropy)
	s := person.SignOn{
		Nonce: p.base.Entropy.Base62(person.SignOnCharacters), Verifier: p.base.Entropy.Base62(person.SignOnCharacters),
		SessionID: in, Factor: factor, At: p.base.Clock.Now(),
	}
	plain, err := s.Text()
	if err != nil {
		return SigningOn{}, err
	}
	sealed, err := p.base.Secrets.Seal(plain, person.SignOnContext(hash))
	if err != nil {
		return SigningOn{}, err
	}
	url, err := p.base.SignOn.Begin(ctx, ports.SignOnRequest{
		State: person.State(sealed), Nonce: s.Nonce, Verifier: s.Verifier, Anew: in != "",
	})
	if err != nil {
		return SigningOn{}, p.unusable(ctx, err)
	}
	return SigningOn{url, text}, nil
}

// told is what the issuer says of who comes back, in the session in which it was asked. UNAUTHORIZED, SERVER_BUSY.
func (p *People) told(
	ctx context.Context, r Returned, in id.SessionID, requestID string,
) (s person.SignOn, t person.Told, err error) {
	if s, err = p.returned(r); err != nil {
		return s, t, err
	}
	if err := s.Answers(in, p.base.Clock.Now()); err != nil {
		return s, t, err
	}
	if r.Refusal != "" || r.Code == "" {
		return s, t, person.ErrSignOn()
	}
	t, err = p.base.SignOn.Finish(ctx, ports.SignOnAnswer{Code: r.Code, Verifier: s.Verifier, Issuer: r.Issuer})
	if err == nil {
		err = s.Accept(t, p.base.SignOn.Issuer(), p.base.Clock.Now())
	}
	return s, t, p.doubted(ctx, p.unusable(ctx, err), requestID)
}

// returned is the sign-on of a state, which only the browser of its cookie brings back. UNAUTHORIZED.
func (p *People) returned(r Returned) (s person.SignOn, err error) {
	hash, ok := token.Parse(r.Token)
	sealed, is := person.ParseState(r.State)
	if !ok || !is {
		return s, person.ErrSignOn()
	}
	plain, err := p.base.Secrets.Open(sealed, person.SignOnContext(hash))
	switch {
	case errors.Is(err, ports.ErrNoRing):
		return s, err
	case err != nil:
		return s, person.ErrSignOn()
	}
	return person.ParseSignOn(plain)
}

// unusable tells the operator's log why the issuer cannot be used, and returns the error as it is. Many like it are told as one:
// who causes a line may be nobody.
func (p *People) unusable(ctx context.Context, err error) error {
	if fault.Has(err, fault.ServerBusy) {
		p.base.Journal.Log(ctx, ports.JournalEvent{What: "sign_on.failed", Err: err})
	}
	return err
}

// doubted tells the operator's log of a doubt, and returns what the person is told in its place: UNAUTHORIZED, or FORBIDDEN. Any
// other error it returns as it is. Who causes a line has logged in at the issuer.
func (p *People) doubted(ctx context.Context, err error, requestID string) error {
	var d person.Doubt
	if !errors.As(err, &d) {
		return err
	}
	p.base.Journal.Log(ctx, ports.JournalEvent{What: "sign_on.refused", RequestID: requestID, Err: d})
	if d == person.AnotherPerson {
		return person.ErrStranger()
	}
	return person.ErrSignOn()
}

// BeginSignOn begins a log-in by the issuer. RATE_LIMITED: too many attempts from the address. FEATURE_NOT_AVAILABLE: the
// installation has no issuer. SERVER_BUSY: the issuer does not answer.
func (p *People) BeginSignOn(ctx context.Context, from Client) (SigningOn, error) {
	if _, err := p.admit(ctx, from, ""); err != nil {
		return SigningOn{}, err
	}
	return p.beginSignOn(ctx, "", false)
}

// LogInBySignOn begins a session of the person whom the issuer names. The first time that is the user with the address that it
// has verified, who is linked to the issuer's subject and told so once the session is open; from then on the subject alone
// counts, whatever address it has. Where the person has a second factor, the session awaits it, unless the issuer stands for
// both. The session is as recent as the log-in at the issuer.
//
// UNAUTHORIZED: what came back is not accepted, or came too late. FORBIDDEN: the issuer does not vouch for an address; or, the
// same text for both, the address is nobody's, or that of a user who is linked to another subject. RATE_LIMITED, SERVER_BUSY as
// of BeginSignOn.
func (p *People) LogInBySignOn(ctx context.Context, r Returned, from Client) (Entered, error) {
	d, err := p.admit(ctx, from, "")
	if err != nil {
		return Entered{}, err
	}
	_, t, err := p.told(ctx, r, "", from.RequestID)
	if err != nil {
		return Entered{}, err
	}
	user, err := ports.Read(ctx, p.base.Store, func(ctx context.Context, tx ports.Tx) (id.UserID, error) {
		return userOf(ctx, tx, t)
	})
	if err != nil {
		return Entered{}, base.NotFound(err, person.ErrStranger())
	}
	in, err := p.enter(ctx, user, person.BySignOn, from, d, func(
		ctx context.Context, tx ports.Tx, user account.User,
	) (opening, error) {
		switch now, err := userOf(ctx, tx, t); {
		case err != nil:
			return opening{}, base.NotFound(err, person.ErrStranger())
		case now != user.ID: // the subject or the address is another one's by now
			return opening{}, person.ErrSignOn()
		}
		i := person.Identity{Issuer: t.Issuer, Subject: t.Subject}
		waits, err := p.needsCode(ctx, tx, user.ID)
		switch {
		case err != nil:
			return opening{}, err
		case waits:
			_, err = linked(ctx, tx, user.ID, i)
			return opening{awaits: true, gets: i}, err
		}
		return opening{proved: t.ProvedAt(p.base.Clock.Now())}, p.link(ctx, tx, user, i)
	})
	return in, p.doubted(ctx, err, from.RequestID)
}

// userOf is the user of a subject or, where it is not linked, of its address. FORBIDDEN where that is not vouched for; ErrNoRow
// where it is nobody's.
func userOf(ctx context.Context, tx ports.Tx, t person.Told) (id.UserID, error) {
	known, err := tx.Identities().BySubject(ctx, t.Issuer, t.Subject)
	if !errors.Is(err, ports.ErrNoRow) {
		return known.UserID, err
	}
	email, err := t.Address()
	if err != nil {
		return "", err
	}
	user, err := tx.Accounts().UserByEmail(ctx, email)
	return user.ID, err
}

// linked reports whether a person, who is locked, has an identity. A Doubt where it is another one at the same issuer.
func linked(ctx context.Context, tx ports.Tx, user id.UserID, i person.Identity) (bool, error) {
	list, err := tx.Identities().Of(ctx, user)
	has, is := person.IdentityAt(i.Issuer, list)
	if is && has.Subject != i.Subject {
		return false, person.AnotherPerson
	}
	return is, err
}

// link gives a person, who is locked, an identity, unless it is so already, and tells them. A Doubt as of linked.
func (p *People) link(ctx context.Context, tx ports.Tx, user account.User, i person.Identity) error {
	if has, err := linked(ctx, tx, user.ID, i); err != nil || has {
		return err
	}
	i.UserID, i.CreatedAt = user.ID, p.base.Clock.Now()
	if err := tx.Identities().Add(ctx, i); err != nil {
		return err
	}
	of, err := tx.Accounts().OfOwner(ctx, user.ID)
	if err != nil {
		return err
	}
	note := "You signed on by " + p.base.SignOnRules.Name + " for the first time: one can log in by it from now on."
	if err := p.tell(ctx, tx, mail.ToTell, of.ID, user.Email, note); err != nil {
		return err
	}
	return p.base.Audit(ctx, tx, database.Record{AccountID: of.ID}, audit.ByUser(user.ID), audit.SignOnLinked,
		audit.Details{"issuer": i.Issuer, "subject": i.Subject})
}

// signsOn reports whether a person is linked at the issuer, with the identity.
func (p *People) signsOn(ctx context.Context, tx ports.Tx, user id.UserID) (i person.Identity, is bool, err error) {
	list, err := tx.Identities().Of(ctx, user)
	i, is = person.IdentityAt(p.base.SignOn.Issuer().URL, list)
	return i, is, err
}

// BeginSignOnProof begins a proof by the issuer of a person who is logged in, who logs in there anew. Where the person has a
// second factor, and the issuer does not stand for both, a code is needed, and used up.
//
// UNAUTHORIZED: the caller is no person, or the code is wrong; person.MaxFactorTries of these end the session. RATE_LIMITED: too
// many proofs were tried in the session. FEATURE_NOT_AVAILABLE, SERVER_BUSY as of BeginSignOn.
func (p *People) BeginSignOnProof(ctx context.Context, c access.Caller, code string) (SigningOn, error) {
	if !c.IsPerson() {
		return SigningOn{}, person.ErrNoSession()
	}
	if err := p.admitProof(ctx, c); err != nil {
		return SigningOn{}, err
	}
	needs, err := ports.Read(ctx, p.base.Store, func(ctx context.Context, tx ports.Tx) (bool, error) {
		return p.needsCode(ctx, tx, c.Session.UserID)
	})
	if err == nil && needs {
		err = p.giveCode(ctx, c, code)
	}
	if err != nil {
		return SigningOn{}, err
	}
	return p.beginSignOn(ctx, c.Session.ID, needs)
}

// needsCode reports whether the issuer's word needs a code of the person's authenticator app beside it.
func (p *People) needsCode(ctx context.Context, tx ports.Tx, user id.UserID) (bool, error) {
	_, counts, err := factorOf(ctx, tx, user)
	return counts && !p.base.SignOnRules.BothFactors, err
}

// giveCode uses up a code, which leaves the caller's session as it is. UNAUTHORIZED.
func (p *People) giveCode(ctx context.Context, c access.Caller, code string) error {
	return p.judge(ctx, c.Session, person.ErrLogIn(), func(
		ctx context.Context, tx ports.Tx, user account.User,
	) (person.Means, error) {
		return byCode(p.accepts(ctx, tx, user.ID, code))
	}, func(_ context.Context, _ ports.Tx, _ account.User, in person.Session, _ person.Means) error {
		if !in.IsOpen(p.base.Clock.Now()) {
			return person.ErrNoSession()
		}
		return nil
	})
}

// ProveBySignOn is ProveAgain by the issuer, for the caller who has begun that in the same session. UNAUTHORIZED also where the
// issuer names another person, or does not say that the person has logged in there since.
func (p *People) ProveBySignOn(ctx context.Context, c access.Caller, r Returned) (Entered, error) {
	if !c.IsPerson() {
		return Entered{}, person.ErrNoSession()
	}
	if err := p.admitProof(ctx, c); err != nil {
		return Entered{}, err
	}
	s, t, err := p.told(ctx, r, c.Session.ID, c.RequestID)
	if err != nil {
		return Entered{}, err
	}
	return p.prove(ctx, c.Session, person.ErrSignOn(), func(
		ctx context.Context, tx ports.Tx, user account.User,
	) (person.Means, error) {
		known, err := tx.Identities().BySubject(ctx, t.Issuer, t.Subject)
		if err != nil || known.UserID != user.ID {
			return "", base.NotFound(err, nil)
		}
		needs, err := p.needsCode(ctx, tx, user.ID)
		if err != nil || needs && !s.Factor {
			return "", err
		}
		return person.BySignOn, nil
	}, nothing)
}
