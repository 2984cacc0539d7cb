package spec

import (
	"fmt"
	"time"
)

// uploading are restores from dumps of customers' own.
var uploading = []Scenario{
	{Name: "a dump that comes in parts takes the place of the database", Needs: []Ability{Restoring}, Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.uploadable()
		session := s.Connects(made.Login())
		s.OK(session.Write("lost"))
		file := ada.dumpOf("brought")
		u, half, all := ada.Announces(made.ID, file), len(file)/2, len(file)
		s.That(u.UploadURL == made.path("/backups/restore-upload/"+string(u.UploadID)), "it is sent to %s", u.UploadURL)
		left := time.Until(u.ExpiresAt)
		s.That(s.Clock != nil || left > 55*time.Minute && left <= time.Hour, "it expires in %s", left)

		asks := fmt.Sprintf("bytes */%d", all)
		has := func(answer Answer, want string) {
			s.Helper()
			s.That(answer.Status == 204 && answer.Header.Get("Range") == want && len(answer.Body) == 0,
				"%d %s, range %q, want %q", answer.Status, answer.Body, answer.Header.Get("Range"), want)
		}
		has(ada.puts(u, asks, nil), "")
		has(ada.puts(u, fmt.Sprintf("bytes 0-%d/%d", half-1, all), file[:half]), fmt.Sprintf("bytes=0-%d", half-1))
		s.Refused(ada.puts(u, "", file).refusal(), "BACKUP_CONFLICT")
		s.Refused(refusal(ada.Restores.CompleteUpload(ctx, made.ID, completing(u))), "BACKUP_CONFLICT")
		has(ada.puts(u, asks, nil), fmt.Sprintf("bytes=0-%d", half-1))
		has(ada.puts(u, fmt.Sprintf("bytes %d-%d/%d", half, all-1, all), file[half:]), fmt.Sprintf("bytes=0-%d", all-1))
		s.That(session.Alive(), "the upload has ended a session")

		done := s.WithKey(ada.Account, made.ID).Completes(made.ID, u)
		s.That(done.Type == "restore" && done.Status == "succeeded" && done.Error == nil && done.Progress == 100,
			"it ended as %+v: %+v", done, done.Error)
		s.That(string(*done.Result) == `{"uploadId":"`+string(u.UploadID)+`","notes":[]}`, "the result is %s", *done.Result)
		s.Eventually("the session of before ends", session.Ended)
		s.hasNotes(ada, made, "brought")
		s.OK(s.Connects(made.Login()).Write("new"))
		s.Eventually("the upload has ended", func() bool {
			return ada.puts(u, asks, nil).Status == 404
		})
	}},
}
