// Tests of scripts/preprocess_openclip.py: the same tensors of images and prompts as open_clip
// makes, and errors.
#include "script.h"
#include "tests/paths.h"

namespace cgc::e2e {
namespace {

const fs::path kTiny = test::sourceDir() / "tests/data/tiny.json";

class Preprocess : public ScriptTest {
protected:
  /// Makes a color image in landscape format and a gray image in portrait format.
  void makePictures() {
    const Outcome made = python({"-c",
                                 R"(
from PIL import Image
wide = Image.new("RGB", (90, 60))
wide.putdata([(x * 7 % 256, x * 3 % 256, x % 256) for x in range(90 * 60)])
wide.save("wide.png")
wide.resize((50, 80)).convert("L").save("high.jpg")
)"});
    ASSERT_EQ(made.status, 0) << made.err;
  }
};

TEST_F(Preprocess, MakesWhatOpenClipMakes) {
  makePictures();
  for (const char *out : {"tiny", "full", "half"})
    fs::create_directory(folder / out);
  const std::vector<Outcome> outcomes = scriptEach(
      "preprocess_openclip",
      {{"--config", kTiny, "--image", "wide.png", "--out", "tiny"},
       {"--model", "ViT-B-32", "--image", "wide.png", "high.jpg", "--text", "A cat", "", "--out",
        "full"},
       {"--model", "ViT-B-32", "--image", "high.jpg", "--precision", "fp16", "--out", "half"}});
  for (const Outcome &outcome : outcomes)
    ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcomes[0].out, "tiny/image.npy: image=f32[1,3,32,32]\n");
  EXPECT_EQ(outcomes[1].out,
            "full/image.npy: image=f32[2,3,224,224]\nfull/text.npy: text=i64[2,77]\n");
  EXPECT_EQ(outcomes[2].out, "half/image.npy: image=f16[1,3,224,224]\n");
  EXPECT_EQ(files(), (std::vector<std::string>{"full", "half", "high.jpg", "tiny", "wide.png"}));

  // Computes the same with the transform that open_clip gives its users.
  const Outcome same = python({"-c",
                               R"(
import sys
import numpy, open_clip, torch
from PIL import Image
open_clip.add_model_config(sys.argv[1])
pictures = [Image.open(path) for path in ("wide.png", "high.jpg")]
_, _, tiny = open_clip.create_model_and_transforms("tiny")
_, _, full = open_clip.create_model_and_transforms("ViT-B-32")
batch = torch.stack([full(picture) for picture in pictures]).numpy()
print(numpy.array_equal(numpy.load("tiny/image.npy"), tiny(pictures[0])[None].numpy()),
      numpy.array_equal(numpy.load("full/image.npy"), batch),
      numpy.array_equal(numpy.load("half/image.npy"), batch[1:].astype("float16")),
      numpy.array_equal(numpy.load("full/text.npy"), open_clip.get_tokenizer("ViT-B-32")(["A cat", ""])))
)",
                               kTiny});
  EXPECT_EQ(same.out, "True True True True\n") << same.err;

  makePlan({"--entry", "encode_image"});
  const Outcome ran =
      cgc({"run", "plan.cgplan", "--input", "image=@tiny/image.npy", "--output", "y.npy"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(npyFloats(folder / "y.npy").size(), 32u);
}

TEST_F(Preprocess, RefusesWhatItCannotRead) {
  makePictures();
  writeFile(folder / "text.png", "no picture");
  const std::vector<Outcome> outcomes =
      scriptEach("preprocess_openclip",
                 {{"--model", "ViT-B-32", "--image", "wide.png", "text.png", "--text", "a cat"},
                  {"--config", kTiny, "--text", "a cat"},
                  {"--model", "ViT-L-14", "--image", "wide.png"},
                  {"--model", "ViT-L-14", "--image", "wide.png", "--tag", "opeanai"}});
  expectErrorLine(outcomes[0], 1, {"text.png: this is no picture", "PNG or JPEG"});
  expectErrorLine(outcomes[1], 1, {"tiny: its tokenizer makes the id 49407", "vocab_size is 512"});
  expectErrorLine(outcomes[2], 2, {"ViT-L-14", "different transforms", "--tag", "openai"});
  expectErrorLine(outcomes[3], 2, {"--tag opeanai", "ViT-L-14", "openai"});
  EXPECT_EQ(files(), (std::vector<std::string>{"high.jpg", "text.png", "wide.png"}));
}

TEST_F(Preprocess, ChecksFilesBeforeTheSlowImports) {
  writeFile(folder / "image.npy", "a picture of an odd name");
  const std::string name = "preprocess_openclip";
  expectErrorLine(script(name, {"--model", "ViT-B-32", "--image", "image.npy"}), 2,
                  {"--out image.npy", "would be lost"});
  EXPECT_EQ(readFile(folder / "image.npy"), "a picture of an odd name");
  expectErrorLine(script(name, {"--model", "ViT-B-32", "--image", "no.png"}), 1,
                  {"no.png: no such file"});
  expectErrorLine(script(name, {"--model", "ViT-B-32", "--text", "a", "--out", "none"}), 1,
                  {"the folder none does not exist"});
  expectErrorLine(script(name, {"--model", "ViT-B-32", "--text", "a", "--out", ""}), 2,
                  {"--out ''", "give a folder"});
  expectErrorLine(script(name, {"--model", "ViT-B-23", "--text", "a"}), 1,
                  {"no model 'ViT-B-23'", "did you mean ViT-B-32"});
  expectError(script(name, {"--model", "ViT-B-32"}), 2, {"--image FILE", "--text PROMPT"});
  EXPECT_EQ(files(), std::vector<std::string>{"image.npy"});
}

} // namespace
} // namespace cgc::e2e
