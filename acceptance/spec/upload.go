package spec

import (
	"fmt"
	"strings"
	"time"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
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
		s.That(restoredTo(done, `{"uploadId":"`+string(u.UploadID)+`","notes":[],"change":`, 1, 1), "the result is %s", *done.Result)
		s.Eventually("the session of before ends", session.Ended)
		s.hasNotes(ada, made, "brought")
		s.OK(s.Connects(made.Login()).Write("new"))
		s.Eventually("the upload has ended", func() bool {
			return ada.puts(u, asks, nil).Status == 404
		})
	}},
	{Name: "a file that is not what was announced restores nothing", Needs: []Ability{Restoring}, Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.uploadable()
		session := s.Connects(made.Login())
		s.OK(session.Write("kept"))
		file := ada.dumpOf("brought")
		other := append([]byte{}, file...)
		other[len(other)-5] ^= 1
		u := ada.Announces(made.ID, file)
		s.That(ada.puts(u, "", other).Status == 204, "it is not taken")
		done := ada.Completes(made.ID, u)
		s.That(done.Status == "failed" && done.Error != nil && done.Error.Code == "VALIDATION_ERROR",
			"it ended as %+v: %+v", done, done.Error)
		s.That(session.Alive(), "a session was ended")
		s.hasNotes(ada, made, "kept")
	}},
	{Name: "a part of a dump restores nothing, unless it is accepted", Needs: []Ability{Restoring}, Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.uploadable()
		s.OK(s.Connects(made.Login()).Write("kept"))
		const part = "CREATE TABLE t (n int);\n"
		for _, text := range []string{"", "-- nothing\n\nSET lock_timeout = 0;\n", part} {
			done := ada.Completes(made.ID, ada.Uploads(made.ID, gzipped(text)))
			s.That(done.Status == "failed" && done.Error != nil && done.Error.Code == "UPLOAD_INCOMPLETE" && done.Error.Message != "",
				"it ended as %+v: %+v", done, done.Error)
		}
		s.hasNotes(ada, made, "kept")
		accepts := func(shrink bool) wire.Operation {
			body := completing(ada.Uploads(made.ID, gzipped(part)))
			body.AcceptIncomplete, body.ConfirmShrink = true, shrink
			return ada.Follows(must(ada.Restores.CompleteUpload(ctx, made.ID, body))(s).Operation)
		}
		done := accepts(false)
		s.That(done.Error != nil && done.Error.Code == "RESTORE_SHRINKS", "it ended as %+v: %+v", done, done.Error)
		done = accepts(true)
		s.That(done.Status == "succeeded" && strings.Contains(string(*done.Result), `"acceptIncomplete":true`),
			"it ended as %+v: %+v", done, done.Error)
	}},
	{Name: "an upload is for enrolled databases with a single login, and its restore needs consent", Play: func(s *Stage) {
		ada, made := s.single()
		file := []byte("no dump, as nothing of it is read")
		s.Refused(refusal(ada.Restores.AnnounceUpload(ctx, made.ID, announcing(file))), "FEATURE_NOT_AVAILABLE")
		s.OK(s.Operator.Enroll(made.ID, "restore-upload"))
		wrong := announcing(file)
		wrong.SizeBytes = 10<<30 + 1
		s.Refused(refusal(ada.Restores.AnnounceUpload(ctx, made.ID, wrong)), "VALIDATION_ERROR", "sizeBytes")
		wrong = announcing(file)
		wrong.ChecksumSHA256 = strings.ToUpper(wrong.ChecksumSHA256)
		s.Refused(refusal(ada.Restores.AnnounceUpload(ctx, made.ID, wrong)), "VALIDATION_ERROR", "checksumSha256")
		u := wire.Upload{UploadID: nobodysID, UploadURL: made.path("/backups/restore-upload/" + nobodysID)}
		s.Refused(ada.puts(u, "", file).refusal(), "UPLOAD_NOT_FOUND")
		s.Refused(refusal(ada.Restores.CompleteUpload(ctx, made.ID, completing(u))), "UPLOAD_NOT_FOUND")
		s.Refused(refusal(ada.Restores.CompleteUpload(ctx, made.ID, wire.CompleteUpload{UploadID: nobodysID})),
			"VALIDATION_ERROR", "confirmDisconnect")

		managed := ada.Creates("managed")
		s.OK(s.Operator.Enroll(managed.ID, "restore-upload"))
		s.Refused(refusal(ada.Restores.AnnounceUpload(ctx, managed.ID, announcing(file))), "MANAGED_ROLE_CONFLICT")
	}},
	{Name: "what a request says about its part must be so", Needs: []Ability{Restoring}, Play: func(s *Stage) {
		ada := s.Customer("pro")
		made, file := ada.uploadable(), []byte("no dump, as nothing of it is read")
		u, all := ada.Announces(made.ID, file), len(file)
		for part, field := range map[string]string{
			"bytes 0-9/10": "Content-Range", "bytes 0-9": "Content-Range", fmt.Sprintf("bytes 0-8/%d", all): "Content-Length",
			fmt.Sprintf("bytes */%d", all): "Content-Length", "": "Content-Length",
		} {
			s.Refused(ada.puts(u, part, file[:10]).refusal(), "VALIDATION_ERROR", field)
		}
		typed := s.sends(Request{Method: "PUT", Path: u.UploadURL, Key: ada.Key.Text, Header: jsonHeader, Body: file})
		s.Refused(typed.refusal(), "UNSUPPORTED_MEDIA_TYPE")
		bob := s.Customer("pro")
		s.Refused(bob.puts(u, "", file).refusal(), "DATABASE_NOT_FOUND")
		s.That(ada.puts(u, "", file).Status == 204, "it does not take the file")
	}},
	{Name: "an upload has an hour, and another announcement ends it", Needs: []Ability{Restoring, MovesTime}, Play: func(s *Stage) {
		ada := s.Customer("pro")
		made, file := ada.uploadable(), []byte("no dump, as nothing of it is read")
		first := ada.Uploads(made.ID, file)
		second := ada.Uploads(made.ID, file)
		s.Refused(refusal(ada.Restores.CompleteUpload(ctx, made.ID, completing(first))), "UPLOAD_NOT_FOUND")
		s.OK(s.Clock.Advance(time.Hour))
		s.Refused(refusal(ada.Restores.CompleteUpload(ctx, made.ID, completing(second))), "UPLOAD_NOT_FOUND")
		s.Refused(ada.puts(second, "", file).refusal(), "UPLOAD_NOT_FOUND")
	}},
}
