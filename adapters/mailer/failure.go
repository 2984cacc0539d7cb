package mailer

import (
	"context"
	"errors"
	"fmt"
	"net/textproto"
	"strings"

	gomail "github.com/wneessen/go-mail"

	message "github.com/pgherd/pgherd/core/mail"
)

// maxText is how much of what a mail server says goes into a log.
const maxText = 200

// handshakeFailure is why there is no session. Nothing of the mail has been sent; what a server answers to a log-in may repeat
// the password, so only its code is told.
func handshakeFailure(ctx context.Context, err error) error {
	var answer *textproto.Error
	if strings.HasPrefix(err.Error(), "SMTP AUTH failed") {
		if errors.As(err, &answer) {
			return fmt.Errorf("the mail server refuses the log-in (%d)", answer.Code)
		}
		return errors.New("the log-in at the mail server failed")
	}
	if ctx.Err() != nil {
		return fmt.Errorf("connecting to the mail server: %w", ctx.Err())
	}
	return fmt.Errorf("connecting to the mail server: %s", flat(err.Error()))
}

// transactionFailure is why the mail was not taken. After the sender's address, what a server says may repeat the recipient's
// address or the mail itself: only its codes are told.
func transactionFailure(ctx context.Context, err error) error {
	var failed *gomail.SendError
	if !errors.As(err, &failed) || failed.ErrorCode() == 0 {
		if ctx.Err() != nil {
			return fmt.Errorf("the attempt took too long or was broken off: %w", ctx.Err())
		}
		return fmt.Errorf("the connection to the mail server failed while %s", phase(failed))
	}
	codes := fmt.Sprint(failed.ErrorCode())
	if enhanced := failed.EnhancedStatusCode(); enhanced != "" {
		codes += " " + enhanced
	}
	switch {
	case !permanent(failed):
		text := fmt.Sprintf("the mail server answered %s to %s", codes, phase(failed))
		if failed.Reason == gomail.ErrSMTPMailFrom {
			text += ": " + flat(failed.Error())
		}
		return errors.New(text)
	case failed.Reason == gomail.ErrSMTPRcptTo:
		return &message.Refusal{Reason: "the mail server refuses the address (" + codes + ")", Doubtful: unexplained(failed)}
	}
	return &message.Refusal{Reason: "the mail server refuses the mail (" + codes + ")", Doubtful: unexplained(failed)}
}

// unexplained reports whether the server refuses without a cause. Some answer so, say 550, to a sender whom they do not know yet,
// or while something behind them fails.
func unexplained(failed *gomail.SendError) bool {
	enhanced := failed.EnhancedStatusCode()
	return enhanced == "" || enhanced == "5.0.0"
}

// permanent reports whether the server will answer the same to another attempt. What it says of the sender or the log-in, and
// whatever it calls a matter of policy (5.7), is about this installation: an operator can mend it, so the mail waits.
func permanent(failed *gomail.SendError) bool {
	aboutMail := failed.Reason == gomail.ErrSMTPRcptTo || failed.Reason == gomail.ErrSMTPDataClose
	const logInFirst = 530
	return aboutMail && failed.ErrorCode() >= 500 && failed.ErrorCode() != logInFirst &&
		!strings.HasPrefix(failed.EnhancedStatusCode(), "5.7.")
}

func phase(failed *gomail.SendError) string {
	if failed == nil {
		return "sending"
	}
	return failed.Reason.String()
}

// flat makes one bounded line of what a server says.
func flat(text string) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "?"), func(r rune) bool { return r < ' ' }), " ")
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "..."
	}
	return text
}
