// Tests of Dataset: samples are found in each kind of file, and what does not fit is named.
#include "tools/cgc/train/dataset.h"

#include "data_files.h"

#include <gtest/gtest.h>

namespace cgc::tool {
namespace {

class DatasetTest : public testing::Test {
protected:
  DatasetTest() {
    inputs[0].name = "image";
    inputs[0].sizes = {2, 2};
    inputs[1].name = "text";
    inputs[1].dtype = DType::I64;
    inputs[1].sizes = {2};
    write("image.npy", npyText(image));
    write("text.npy", npyText(text));
  }
  std::string write(const std::string &name, const std::string &bytes) {
    writeBytes(folder / name, bytes);
    return folder / name;
  }
  std::string npy(const std::string &name) {
    return name + "=" + std::string(folder / name) + ".npy";
  }
  void refuses(const std::vector<std::string> &data, const std::string &message,
               Code code = Code::Usage) {
    const auto opened = Dataset::open(data, inputs);
    ASSERT_FALSE(opened.isOk());
    EXPECT_EQ(opened.status().code(), code);
    EXPECT_NE(opened.status().message().find(message), std::string::npos)
        << opened.status().message();
  }
  /// "image image text" for each sample.
  std::vector<std::string> samples(const std::vector<std::string> &data) {
    auto opened = Dataset::open(data, inputs);
    EXPECT_TRUE(opened.isOk()) << opened.status().message();
    std::vector<std::string> all;
    for (size_t i = 0; opened.isOk() && i < opened->samples(); ++i) {
      float pixels[2];
      int64_t token = 0;
      std::memcpy(pixels, opened->row(0, i).data(), sizeof(pixels));
      std::memcpy(&token, opened->row(1, i).data(), sizeof(token));
      all.push_back(std::to_string(int(pixels[0])) + " " + std::to_string(int(pixels[1])) + " " +
                    std::to_string(token));
    }
    return all;
  }

  const HostTensor image = tensorOf<float>(DType::F32, {3, 2}, {0, 1, 2, 3, 4, 5});
  const HostTensor text = tensorOf<int64_t>(DType::I64, {3}, {7, 8, 9});
  const std::vector<std::string> kSamples = {"0 1 7", "2 3 8", "4 5 9"};
  std::vector<IoTensor> inputs{2};
  test::TempFolder folder;
};

TEST_F(DatasetTest, ReadsArrays) {
  EXPECT_EQ(samples({npy("text"), npy("image")}), kSamples);
}

TEST_F(DatasetTest, ReadsSafetensorsOneBehindAnother) {
  const std::string one = write(
      "x=1.safetensors", safetensorsText({{"other", text}, {"text", text}, {"image", image}}));
  EXPECT_EQ(samples({one}), kSamples);
  std::vector<std::string> twice = kSamples;
  twice.insert(twice.end(), kSamples.begin(), kSamples.end());
  EXPECT_EQ(samples({one, one}), twice);
}

TEST_F(DatasetTest, ReadsTarShards) {
  const auto sample = [](float first, int64_t token, const std::string &key) {
    return tarMember(key + ".text.npy", npyText(tensorOf<int64_t>(DType::I64, {}, {token}))) +
           tarMember(key + ".json", "{}") +
           tarMember(key + ".image.npy",
                     npyText(tensorOf<float>(DType::F32, {2}, {first, first + 1})));
  };
  const std::string first = write("0.tar", sample(0, 7, "a/0") + sample(2, 8, "a/1") + kTarEnd);
  const std::string second = write("1.tar", sample(4, 9, "a/0") + kTarEnd);
  EXPECT_EQ(samples({first, second}), kSamples);
}

TEST_F(DatasetTest, NamesTheSampleOfAnArchiveThatLacksAnInput) {
  const std::string text = npyText(tensorOf<int64_t>(DType::I64, {}, {1}));
  refuses({write("x.tar", tarMember("k.text.npy", text) + kTarEnd)},
          "the sample 'k' does not have each of image, text once");
}

TEST_F(DatasetTest, NamesWhatDoesNotFit) {
  refuses({"image.npy"}, "give NAME=FILE.npy, FILE.safetensors or FILE.tar");
  refuses({npy("image")}, "no samples of input 'text'");
  refuses({npy("image"), npy("image")}, "the data of 'image' is given twice");
  refuses({"picture=x.npy"}, "the step has no input 'picture'; it has image, text");
  refuses({"image=" + std::string(folder / "text.npy")},
          "is i64[3], and input 'image' takes f32[N,2] for N samples");
  refuses({npy("image"), "x.tar"}, "give files of one kind only");
  write("text.npy", npyText(tensorOf<int64_t>(DType::I64, {2}, {1, 2})));
  refuses({npy("image"), npy("text")}, "has 3 samples of 'image' and 2 of 'text'");
  refuses({write("x.safetensors", safetensorsText({{"image", image}}))},
          "has no tensor 'text', which the step takes; it has image");
}

TEST_F(DatasetTest, NeedsABatch) {
  for (IoTensor &input : inputs)
    input.sizes[0] = 4;
  refuses({npy("image"), npy("text")}, "has 3 samples, fewer than a batch of 4");
  inputs[1].sizes = {};
  refuses({npy("image"), npy("text")}, "input 'text' is i64[]: its dimension 0 is not the batch");
}

TEST_F(DatasetTest, RefusesCutFiles) {
  const std::string tensors = safetensorsText({{"text", text}, {"image", image}});
  refuses({write("x.safetensors", tensors.substr(0, tensors.size() - 1))}, "the file is cut short",
          Code::InvalidFile);
  write("image.npy", npyText(image).substr(0, 140));
  refuses({npy("image")}, "is truncated or damaged", Code::InvalidFile);
}

} // namespace
} // namespace cgc::tool
