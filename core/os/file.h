// Files by descriptor, where the standard library does not serve: locks, atomic replacement, reads by position. What
// fails returns -1, false or errno, and sets errno. Paths are UTF-8. A path of a text file never changes its line ends.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

namespace tutti::os {

/// How open_file opens, together: at least one of to_read and to_write.
enum : unsigned {
  to_read = 1,
  to_write = 2,
  make = 4,         ///< creates the file if it is missing
  make_new = 8,     ///< creates it, or fails with EEXIST
  at_end = 16,      ///< every write goes to the end
  empty_it = 32,    ///< removes what the file contains
  not_a_link = 64,  ///< fails if the path is a symbolic link
  at_once = 128,    ///< a pipe without a writer does not block
};

/// Opens a file that child programs do not inherit; `mode`: permissions of a new one. Other processes may rename and
/// remove it while it is open. -1 on failure.
int open_file(const std::string& path, unsigned how, unsigned mode = 0666);
void close_file(int file);
/// A file without a name, for reading and for writing at its end; -1 on failure.
int open_unnamed_file();
/// The C stream of an open file, which closes it; null on failure.
std::FILE* stream_of(int file, const char* mode);
int descriptor_of(std::FILE* stream);

/// What the system says about a file.
struct FileFacts {
  bool regular = false, folder = false;
  uint64_t bytes = 0;
  uint64_t device = 0, number = 0;  ///< together they identify the file
  uint64_t written_ns = 0, changed_ns = 0;
  unsigned mode = 0;  ///< the permission bits
};
std::optional<FileFacts> facts_of(int file);
/// With `follow` false about a symbolic link itself, which is neither regular nor a folder.
std::optional<FileFacts> facts_of(const std::string& path, bool follow = true);

/// Number of bytes read or written, at least 1 unless the file has ended (0) or an error occurs (-1).
int64_t read_some(int file, void* to, size_t bytes);
int64_t read_at(int file, void* to, size_t bytes, uint64_t at);
int64_t write_some(int file, const void* from, size_t bytes);
int64_t write_at(int file, const void* from, size_t bytes, uint64_t at);
bool write_all(int file, const void* from, size_t bytes);

/// The file's size; also moves its position there. -1 for a pipe.
int64_t end_of(int file);
/// Cuts or extends the file to that size.
bool resize(int file, uint64_t bytes);
/// Flushes to the disk, if the file system can; returns errno or 0.
int flush(int file);
/// Flushes what a folder lists ("": the working folder), where it can be read; returns errno or 0.
int flush_folder(const std::string& folder);
/// Gives a file these permission bits; Windows has none.
void set_mode(int file, unsigned mode);
/// Sets the time of the last use to now.
void touch(int file);

/// Locks the file for this descriptor, without waiting; released when it is closed or the process ends.
bool lock(int file, bool shared);
/// Whether an errno of lock() means that the file system has no locks.
bool no_locks(int why);
/// Whether an errno of writing means that the disk, or a limit, leaves no more space.
bool no_space(int why);

/// Renames; an existing file `to` is replaced at once, also while it is open. Both are on one file system.
bool replace_file(const std::string& from, const std::string& to);
bool remove_file(const std::string& path);
/// The longest name of a file in the folder ("": the working folder); 0 if unknown.
size_t longest_name(const std::string& folder);

bool may_read(const std::string& path);
bool may_write(const std::string& path);
bool may_run(const std::string& path);

/// Makes the folder for this user alone, if it does not exist; its parent must. False: it could not be made.
bool make_private_folder(const std::string& path);
/// Whether it is a folder, not a link, of this user, in which nobody else may write (nor read, unless
/// `others_may_read`).
bool is_private_folder(const std::string& path, bool others_may_read);
/// Free bytes for this user on the disk of an existing folder.
std::optional<uint64_t> free_bytes(const std::string& folder);

}  // namespace tutti::os
